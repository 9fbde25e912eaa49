/** The policy of the bench: it looks at its payload, and has no objection. */
export default { PreToolUse: ({ tool }) => tool.name !== '' };
