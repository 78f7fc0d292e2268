# verax on the command line: docker run --rm -v "$PWD:/data" verax evaluate preds.parquet
FROM python:3.13-slim AS build
WORKDIR /build
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY man man
COPY src src
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.13-slim
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir "$(ls /wheels/verax_scores-*.whl)[all]" \
    && rm -r /wheels \
    && useradd --create-home verax
USER verax
WORKDIR /data
ENTRYPOINT ["verax"]
CMD ["--help"]
