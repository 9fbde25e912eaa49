# One image for every service of Coxswain. The arguments of `cox` choose the service:
#   docker build -t coxswain . && docker run --rm coxswain serve sessions --nats nats://bus:4222
ARG NODE_IMAGE=node:24.21.0-bookworm-slim
ARG NATS_IMAGE=nats:2.15.1-alpine

# The result is JavaScript, the same on every platform, so both stages run on the platform of the builder.
# Only the package files of the workspace, so that a changed source does not repeat the installation.
FROM --platform=$BUILDPLATFORM ${NODE_IMAGE} AS manifests
COPY . /src
RUN mkdir /manifests && cd /src \
    && find . \( -name 'package*.json' -o -name .npmrc \) -not -path './libs/cli/starter/*' -exec cp --parents {} /manifests/ \;

FROM --platform=$BUILDPLATFORM ${NODE_IMAGE} AS build
WORKDIR /src
COPY --from=manifests /manifests ./
RUN --mount=type=cache,target=/root/.npm --mount=type=secret,id=npmrc,target=/root/.npmrc \
    npm ci --ignore-scripts
COPY . .
# Bundles `cox`, then removes everything that is not needed at run time.
RUN npm run prepare && npm prune --omit=dev --ignore-scripts && rm -rf node_modules/@coxswain node_modules/.cache
# Files for compilers and debuggers only: more than a third of the size.
RUN find node_modules -type f \( -name '*.map' -o -name '*.d.ts' -o -name '*.d.mts' -o -name '*.d.cts' \) -delete
# Everything that is copied into the image.
RUN mkdir -p /image/libs/cli && cp -a LICENSE package.json node_modules /image/ \
    && cp -a libs/cli/package.json libs/cli/bin libs/cli/dist libs/cli/starter /image/libs/cli/ \
    && if [ -d libs/cli/node_modules ]; then cp -a libs/cli/node_modules /image/libs/cli/; fi

FROM ${NATS_IMAGE} AS nats

FROM ${NODE_IMAGE}
# Tools of agents start processes. Process 1 must reap orphans.
RUN apt-get update && apt-get install -y --no-install-recommends 'tini=0.19.0-1*' && apt-get clean && rm -rf /var/lib/apt/lists/*
COPY --from=build /image /opt/coxswain
# For the demo and `cox up`. The binary is linked statically, so it is enough to copy it.
COPY --from=nats /usr/local/bin/nats-server /usr/local/bin/nats-server
COPY deploy/image/cox-health /usr/local/bin/cox-health
RUN ln -s /opt/coxswain/libs/cli/bin/cox.mjs /usr/local/bin/cox \
    && install -d -o node -g node -m 0700 /var/lib/coxswain \
    && install -d -o node -g node /workspace
ARG VERSION=0.1.0
ARG REVISION=unknown
ARG SOURCE
LABEL org.opencontainers.image.title="Coxswain" \
      org.opencontainers.image.description="Durable, steerable AI agent sessions on NATS." \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.source="${SOURCE}" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
# Node uses HTTP_PROXY and HTTPS_PROXY for model requests only with this setting.
ENV NODE_ENV=production COX_STATE_DIR=/var/lib/coxswain COX_FETCH=never NODE_USE_ENV_PROXY=1
# A number, so that Kubernetes can check that it is not root.
USER 1000:1000
# The root folder of sessions without one.
WORKDIR /workspace
# Writable also with a read-only root file system.
VOLUME /var/lib/coxswain
STOPSIGNAL SIGTERM
# Asks the service over its socket. For a container without a service: docker run --no-healthcheck.
HEALTHCHECK --interval=5s --timeout=5s --start-period=30s --retries=3 CMD ["cox-health"]
ENTRYPOINT ["/usr/bin/tini", "--", "cox"]
CMD ["--help"]
