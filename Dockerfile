# One image for every service of Coxswain; what it runs is said by the arguments of `cox`:
#   docker build -t coxswain . && docker run --rm coxswain serve sessions --nats nats://bus:4222
ARG NODE_IMAGE=node:24.21.0-bookworm-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /src
COPY . .
# The install bundles `cox` (its prepare script). Afterwards only what runs stays.
RUN --mount=type=cache,target=/root/.npm --mount=type=secret,id=npmrc,target=/root/.npmrc \
    npm ci && npm prune --omit=dev --ignore-scripts && rm -rf node_modules/@coxswain node_modules/.cache
# What only compilers and debuggers read: more than a third of it.
RUN find node_modules -type f \( -name '*.map' -o -name '*.d.ts' -o -name '*.d.mts' -o -name '*.d.cts' \) -delete
# What is copied into the image, and nothing else.
RUN mkdir -p /image/libs/cli && cp -a LICENSE package.json node_modules /image/ \
    && cp -a libs/cli/package.json libs/cli/bin libs/cli/dist libs/cli/starter /image/libs/cli/ \
    && if [ -d libs/cli/node_modules ]; then cp -a libs/cli/node_modules /image/libs/cli/; fi

FROM ${NODE_IMAGE}
# Tools of agents start processes: whoever is process 1 has to bury those that nobody else does.
RUN apt-get update && apt-get install -y --no-install-recommends 'tini=0.19.0-1*' && apt-get clean && rm -rf /var/lib/apt/lists/*
COPY --from=build /image /opt/coxswain
RUN ln -s /opt/coxswain/libs/cli/bin/cox.mjs /usr/local/bin/cox \
    && install -d -o node -g node -m 0700 /var/lib/coxswain \
    && install -d -o node -g node /workspace
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Coxswain" \
      org.opencontainers.image.description="Durable, steerable AI agent sessions on NATS." \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
ENV NODE_ENV=production COX_STATE_DIR=/var/lib/coxswain COX_FETCH=never
# By number, so that a cluster can see that it is not root.
USER 1000:1000
# The root of sessions that name none.
WORKDIR /workspace
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/bin/tini", "--", "cox"]
CMD ["--help"]
