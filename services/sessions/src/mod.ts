/** The sessions service, for programs that run it in their own process. */
export {
  createApprovalNotices,
  type NoticeTargets,
  publishesNotices,
  signatureOf,
  type Webhook,
  WebhookSettingsError,
  webhookFrom,
} from './approval-notices.ts';
export { PolicyFileError, readPolicyFile } from './load-policy.ts';
export {
  type RetentionService,
  type RetentionServiceOptions,
  startRetentionService,
} from './start-retention-service.ts';
export {
  type HeardOnBus,
  type SessionsService,
  type SessionsServiceOptions,
  startSessionsService,
} from './start-sessions-service.ts';
