# Intake as a container. `docker build .` makes the worker; `--target sandbox` the job board to try it with.
# The base can be another one with Node 24 and npm: --build-arg BASE=...
ARG BASE=node:24-bookworm-slim

# Packages of the product, nothing of development. The lock decides; no package's install script runs.
FROM ${BASE} AS packages
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --omit=dev --ignore-scripts --no-audit --no-fund

# What is for trying and testing is no part of production: the sandbox, the embedded Postgres, the demo.
FROM ${BASE} AS sources
WORKDIR /app
COPY src ./src
RUN rm -r src/dev

FROM ${BASE} AS base
ARG VERSION=1.0.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Intake" \
      org.opencontainers.image.description="Brings every job application from a job board's API into Postgres and its files into object storage, and proves that none is missing." \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
WORKDIR /app
COPY package.json ./
COPY migrations ./migrations
# The checker of proofs, which `intake prove --check` runs as a process of its own.
COPY examples/check-proof.ts ./examples/check-proof.ts
COPY --from=sources /app/src ./src
# A user by number, so that `runAsNonRoot` can see that it is not root. Nothing in /app is theirs: the file system may be read-only.
USER 1000:1000

# The sandbox invents people and their files with packages of development; it is not for production.
FROM ${BASE} AS sandbox-packages
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts --no-audit --no-fund

FROM base AS sandbox
COPY src/dev ./src/dev
COPY --from=sandbox-packages /app/node_modules ./node_modules
EXPOSE 4010
CMD ["node", "src/cli/main.ts", "sandbox", "--host", "0.0.0.0", "--port", "4010", "--live", "30"]

FROM base AS worker
ENV NODE_ENV=production
COPY --from=packages /app/node_modules ./node_modules
EXPOSE 9090 8080
HEALTHCHECK --interval=15s --timeout=6s --start-period=30s --retries=4 CMD ["node", "src/cli/main.ts", "healthcheck"]
# node itself, not npm: npm does not pass signals on.
CMD ["node", "src/cli/main.ts", "worker"]
