/**
 * Every meter of Coxswain's processes. What Prometheus is told is made from this table, and so are its reference and the
 * check of the dashboard. No label names a tenant or a session: a process serves many.
 */

/** What a meter is, and what it says. */
export interface MetricEntry {
  readonly type: 'counter' | 'gauge' | 'histogram';
  /** What it counts or measures. */
  readonly help: string;
  readonly labels: readonly string[];
  readonly unit: 'count' | 'seconds' | 'tokens' | 'USD' | 'ratio';
  /** Which processes have it. */
  readonly of: readonly ('host' | 'gateway' | 'worker')[];
  /** Upper bounds of a histogram's buckets, in its unit. */
  readonly buckets?: readonly number[];
}

const FAST = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10] as const;
const SLOW = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300] as const;
const host = ['host'] as const;
const gateway = ['gateway'] as const;

const ENTRIES = {
  coxswain_sessions: {
    type: 'gauge',
    help: "Sessions of the host's partitions, in memory or not, by their state; loading while their journal is read.",
    labels: ['state'],
    unit: 'count',
    of: host,
  },
  coxswain_replica_findings: {
    type: 'gauge',
    help: 'What the last background check of the store found wrong with replicas, by kind; no series on hosts that do not check.',
    labels: ['kind'],
    unit: 'count',
    of: host,
  },
  coxswain_stream_fill_ratio: {
    type: 'gauge',
    help: 'The share of its limit that a stream has, 0 to 1; no series for streams without a limit, and on hosts that do not check.',
    labels: ['stream'],
    unit: 'ratio',
    of: host,
  },
  coxswain_approvals_waiting: {
    type: 'gauge',
    help: "Calls of the host's sessions that wait for a person, in memory or not.",
    labels: [],
    unit: 'count',
    of: host,
  },
  coxswain_approvals_oldest_seconds: {
    type: 'gauge',
    help: 'How long the first of these calls has waited; 0 where none waits.',
    labels: [],
    unit: 'seconds',
    of: host,
  },
  coxswain_runs_total: {
    type: 'counter',
    help: 'Runs that have ended, by how.',
    labels: ['stop_reason'],
    unit: 'count',
    of: host,
  },
  coxswain_turns_total: { type: 'counter', help: 'Turns that have ended.', labels: [], unit: 'count', of: host },
  coxswain_commands_total: {
    type: 'counter',
    help: 'Commands that sessions have recorded, by whether they were accepted.',
    labels: ['verb', 'outcome'],
    unit: 'count',
    of: host,
  },
  coxswain_rejections_unrecorded_total: {
    type: 'counter',
    help: 'Commands that were rejected without a record, by the quota that was used up; rejections: a session had its share of them.',
    labels: ['reason'],
    unit: 'count',
    of: host,
  },
  coxswain_append_seconds: {
    type: 'histogram',
    help: 'How long a record took to be durable, retries included, by how its append ended.',
    labels: ['outcome'],
    unit: 'seconds',
    of: host,
    buckets: FAST,
  },
  coxswain_fence_rejections_total: {
    type: 'counter',
    help: 'Appends that were refused because somebody else had written.',
    labels: ['by'],
    unit: 'count',
    of: host,
  },
  coxswain_ownership_changes_total: {
    type: 'counter',
    help: 'Sessions that this host took over from another, or lost or handed over to one.',
    labels: ['change'],
    unit: 'count',
    of: host,
  },
  coxswain_queue_age_seconds: {
    type: 'histogram',
    help: 'How long a command had waited in the stream when its record was durable.',
    labels: ['verb'],
    unit: 'seconds',
    of: host,
    buckets: SLOW,
  },
  coxswain_seams_total: {
    type: 'counter',
    help: 'Seams that sessions have come through.',
    labels: ['seam'],
    unit: 'count',
    of: host,
  },
  coxswain_seam_delivery_seconds: {
    type: 'histogram',
    help: 'How long an injection had waited when a seam delivered it.',
    labels: ['seam'],
    unit: 'seconds',
    of: host,
    buckets: SLOW,
  },
  coxswain_hook_seconds: {
    type: 'histogram',
    help: 'How long the hooks of a point took to answer.',
    labels: ['point', 'outcome'],
    unit: 'seconds',
    of: host,
    buckets: FAST,
  },
  coxswain_model_seconds: {
    type: 'histogram',
    help: 'How long an answer of a model took, retries included.',
    labels: ['model', 'outcome'],
    unit: 'seconds',
    of: host,
    buckets: SLOW,
  },
  coxswain_tool_seconds: {
    type: 'histogram',
    help: 'How long a call of a tool took, wherever it ran.',
    labels: ['tool', 'outcome'],
    unit: 'seconds',
    of: host,
    buckets: SLOW,
  },
  coxswain_tokens_total: {
    type: 'counter',
    help: 'Tokens that models were sent (input) and have answered (output).',
    labels: ['model', 'direction'],
    unit: 'tokens',
    of: host,
  },
  coxswain_cost_usd_total: {
    type: 'counter',
    help: 'What that has cost, where the price is known.',
    labels: ['model'],
    unit: 'USD',
    of: host,
  },
  coxswain_served_seconds: {
    type: 'histogram',
    help: 'How long calls, model steps and hooks took where they are served.',
    labels: ['kind', 'name', 'outcome'],
    unit: 'seconds',
    of: ['worker'],
    buckets: SLOW,
  },
  coxswain_served_running: {
    type: 'gauge',
    help: 'Calls, model steps and hooks that are under way where they are served.',
    labels: ['kind'],
    unit: 'count',
    of: ['worker'],
  },
  coxswain_trace_spans_total: {
    type: 'counter',
    help: 'Spans that were made, by what became of them: exported, or dropped because nobody took them.',
    labels: ['outcome'],
    unit: 'count',
    of: ['host', 'gateway', 'worker'],
  },
  coxswain_gateway_requests_total: {
    type: 'counter',
    help: 'Requests that were answered.',
    labels: ['route', 'method', 'status'],
    unit: 'count',
    of: gateway,
  },
  coxswain_gateway_request_seconds: {
    type: 'histogram',
    help: 'How long answers took; of events and exports, until they ended.',
    labels: ['route', 'method'],
    unit: 'seconds',
    of: gateway,
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60],
  },
  coxswain_gateway_commands_total: {
    type: 'counter',
    help: 'Commands that were sent to sessions, by what became of them as far as it was waited for.',
    labels: ['verb', 'outcome'],
    unit: 'count',
    of: gateway,
  },
  coxswain_gateway_watchers: {
    type: 'gauge',
    help: 'Connections that follow sessions.',
    labels: ['kind'],
    unit: 'count',
    of: gateway,
  },
  coxswain_gateway_feeds: {
    type: 'gauge',
    help: 'Sessions that are followed.',
    labels: [],
    unit: 'count',
    of: gateway,
  },
  coxswain_gateway_events_sent_total: {
    type: 'counter',
    help: 'Records, deltas and messages of inspections that were sent to watchers.',
    labels: ['what'],
    unit: 'count',
    of: gateway,
  },
  coxswain_gateway_watchers_cut_off_total: {
    type: 'counter',
    help: 'Watchers that were cut off because they did not read.',
    labels: ['kind'],
    unit: 'count',
    of: gateway,
  },
  coxswain_gateway_refused_total: {
    type: 'counter',
    help: 'Requests that were refused, by code.',
    labels: ['code'],
    unit: 'count',
    of: gateway,
  },
} satisfies Record<string, MetricEntry>;

/** The name of a meter. */
export type MetricName = keyof typeof ENTRIES;

/** All meters by name. */
export const METRIC_CATALOGUE: Readonly<Record<MetricName, MetricEntry>> = ENTRIES;

/** The names of the labels of a meter. */
export type MetricLabel<N extends MetricName> = (typeof ENTRIES)[N]['labels'][number];

/** How many values one label of one meter may have; what comes beyond is counted as `other`. Models, tools and hooks are named by strangers. */
export const METRIC_LABEL_VALUES_MAX = 100;
