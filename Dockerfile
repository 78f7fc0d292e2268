# verax on the command line: docker run --rm -v "$PWD:/data" verax evaluate preds.parquet
# Python 3.13.15 on Debian 13.6; --build-arg PYTHON=python:3.13-slim takes the newest instead.
ARG PYTHON=python:3.13-slim-trixie@sha256:9d2e5553305c7c7b0097999bb17187c69b921ccd6bc9d40e4bb5ebe652c00285
FROM ${PYTHON} AS build
WORKDIR /build
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY man man
COPY src src
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM ${PYTHON}
COPY constraints.txt /
RUN --mount=from=build,source=/wheels,target=/wheels \
    pip install --no-cache-dir --constraint /constraints.txt "$(ls /wheels/verax_scores-*.whl)[all]" \
    && useradd --create-home verax
USER verax
WORKDIR /data
ENTRYPOINT ["verax"]
CMD ["--help"]
