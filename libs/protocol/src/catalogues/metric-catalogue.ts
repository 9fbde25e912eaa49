/**
 * Every meter of Coxswain's processes. The Prometheus output, the reference and the check of the dashboard use this
 * table. No label contains a tenant or a session: a process serves many.
 */

/** The definition of a meter. */
export interface MetricEntry {
  readonly type: 'counter' | 'gauge' | 'histogram';
  /** What it counts or measures. */
  readonly help: string;
  readonly labels: readonly string[];
  readonly unit: 'count' | 'seconds' | 'tokens' | 'USD' | 'ratio';
  /** The processes with this meter. */
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
    help: 'Sessions of the partitions of this host, active or passivated, by state; loading: the journal is being read.',
    labels: ['state'],
    unit: 'count',
    of: host,
  },
  coxswain_replica_findings: {
    type: 'gauge',
    help: 'Problems of replicas in the last background check, by kind. Only on the host that checks.',
    labels: ['kind'],
    unit: 'count',
    of: host,
  },
  coxswain_stream_fill_ratio: {
    type: 'gauge',
    help: 'Used share of the limit of a stream, 0 to 1. Only for streams with a limit, on the host that checks.',
    labels: ['stream'],
    unit: 'ratio',
    of: host,
  },
  coxswain_approvals_waiting: {
    type: 'gauge',
    help: 'Pending approvals of the sessions of this host.',
    labels: [],
    unit: 'count',
    of: host,
  },
  coxswain_approvals_oldest_seconds: {
    type: 'gauge',
    help: 'Age of the oldest pending approval; 0 without pending approvals.',
    labels: [],
    unit: 'seconds',
    of: host,
  },
  coxswain_runs_total: {
    type: 'counter',
    help: 'Ended runs, by stop reason.',
    labels: ['stop_reason'],
    unit: 'count',
    of: host,
  },
  coxswain_turns_total: { type: 'counter', help: 'Ended turns.', labels: [], unit: 'count', of: host },
  coxswain_commands_total: {
    type: 'counter',
    help: 'Commands that sessions recorded, by acceptance.',
    labels: ['verb', 'outcome'],
    unit: 'count',
    of: host,
  },
  coxswain_rejections_unrecorded_total: {
    type: 'counter',
    help: 'Commands rejected without a record, by exhausted quota; rejections: the quota of recorded rejections of a session.',
    labels: ['reason'],
    unit: 'count',
    of: host,
  },
  coxswain_append_seconds: {
    type: 'histogram',
    help: 'Time until a record was durable, including retries, by result of the append.',
    labels: ['outcome'],
    unit: 'seconds',
    of: host,
    buckets: FAST,
  },
  coxswain_fence_rejections_total: {
    type: 'counter',
    help: 'Appends rejected by fencing: another host had written to the journal.',
    labels: ['by'],
    unit: 'count',
    of: host,
  },
  coxswain_ownership_changes_total: {
    type: 'counter',
    help: 'Sessions that this host claimed from, lost to or transferred to another host.',
    labels: ['change'],
    unit: 'count',
    of: host,
  },
  coxswain_queue_age_seconds: {
    type: 'histogram',
    help: 'Time from the arrival of a command in the stream to its durable record.',
    labels: ['verb'],
    unit: 'seconds',
    of: host,
    buckets: SLOW,
  },
  coxswain_seams_total: {
    type: 'counter',
    help: 'Injection points (seams) that sessions passed.',
    labels: ['seam'],
    unit: 'count',
    of: host,
  },
  coxswain_seam_delivery_seconds: {
    type: 'histogram',
    help: 'Waiting time of queued messages until their delivery.',
    labels: ['seam'],
    unit: 'seconds',
    of: host,
    buckets: SLOW,
  },
  coxswain_hook_seconds: {
    type: 'histogram',
    help: 'Response time of the hooks of a point.',
    labels: ['point', 'outcome'],
    unit: 'seconds',
    of: host,
    buckets: FAST,
  },
  coxswain_model_seconds: {
    type: 'histogram',
    help: 'Duration of model responses, including retries.',
    labels: ['model', 'outcome'],
    unit: 'seconds',
    of: host,
    buckets: SLOW,
  },
  coxswain_tool_seconds: {
    type: 'histogram',
    help: 'Duration of tool calls.',
    labels: ['tool', 'outcome'],
    unit: 'seconds',
    of: host,
    buckets: SLOW,
  },
  coxswain_tokens_total: {
    type: 'counter',
    help: 'Input and output tokens of models.',
    labels: ['model', 'direction'],
    unit: 'tokens',
    of: host,
  },
  coxswain_cost_usd_total: {
    type: 'counter',
    help: 'Cost of tokens, if the price is known.',
    labels: ['model'],
    unit: 'USD',
    of: host,
  },
  coxswain_served_seconds: {
    type: 'histogram',
    help: 'Duration of calls, model steps and hooks in the worker that serves them.',
    labels: ['kind', 'name', 'outcome'],
    unit: 'seconds',
    of: ['worker'],
    buckets: SLOW,
  },
  coxswain_served_running: {
    type: 'gauge',
    help: 'In-flight calls, model steps and hooks in the worker that serves them.',
    labels: ['kind'],
    unit: 'count',
    of: ['worker'],
  },
  coxswain_trace_spans_total: {
    type: 'counter',
    help: 'Spans, by result: exported, or dropped because no collector accepted them.',
    labels: ['outcome'],
    unit: 'count',
    of: ['host', 'gateway', 'worker'],
  },
  coxswain_gateway_requests_total: {
    type: 'counter',
    help: 'Answered HTTP requests.',
    labels: ['route', 'method', 'status'],
    unit: 'count',
    of: gateway,
  },
  coxswain_gateway_request_seconds: {
    type: 'histogram',
    help: 'Duration of HTTP responses; of event streams and exports, until their end.',
    labels: ['route', 'method'],
    unit: 'seconds',
    of: gateway,
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60],
  },
  coxswain_gateway_commands_total: {
    type: 'counter',
    help: 'Commands sent to sessions, by the result for which the request waited.',
    labels: ['verb', 'outcome'],
    unit: 'count',
    of: gateway,
  },
  coxswain_gateway_watchers: {
    type: 'gauge',
    help: 'Open connections that follow sessions.',
    labels: ['kind'],
    unit: 'count',
    of: gateway,
  },
  coxswain_gateway_feeds: {
    type: 'gauge',
    help: 'Followed sessions.',
    labels: [],
    unit: 'count',
    of: gateway,
  },
  coxswain_gateway_events_sent_total: {
    type: 'counter',
    help: 'Records, deltas and inspection messages sent to watchers.',
    labels: ['what'],
    unit: 'count',
    of: gateway,
  },
  coxswain_gateway_watchers_cut_off_total: {
    type: 'counter',
    help: 'Watchers disconnected because they did not read (backpressure).',
    labels: ['kind'],
    unit: 'count',
    of: gateway,
  },
  coxswain_gateway_refused_total: {
    type: 'counter',
    help: 'Rejected HTTP requests, by code.',
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

/**
 * Maximum of values of one label of one meter. Further values are counted as `other`. Users choose the names of models,
 * tools and hooks.
 */
export const METRIC_LABEL_VALUES_MAX = 100;
