# A runner: the lakejoin command with everything that it downloads at first use.
#   python -m build --wheel && docker build -t lakejoin .
#   docker run --rm -v "$PWD:/work" lakejoin --config lakejoin.yml refresh --all
FROM python:3.11-slim-bookworm

# ps: Spark's scripts call it. The JRE is the one that the tests run on.
RUN apt-get update \
    && apt-get install -y --no-install-recommends openjdk-17-jre-headless procps tini \
    && rm -rf /var/lib/apt/lists/*

# The lock first: it changes less often than the wheel, so that its layer is reused.
COPY requirements/core.lock /opt/lakejoin/
RUN python -m venv /opt/lakejoin/venv \
    && /opt/lakejoin/venv/bin/pip install --no-cache-dir --require-hashes -r /opt/lakejoin/core.lock
COPY dist/*.whl /opt/lakejoin/
RUN /opt/lakejoin/venv/bin/pip install --no-cache-dir --no-deps /opt/lakejoin/*.whl

# Jars and class archive: a container starts without asking a registry.
RUN /opt/lakejoin/venv/bin/lakejoin setup

RUN useradd --create-home --uid 10001 lakejoin
USER 10001
WORKDIR /work
ENV PATH=/opt/lakejoin/venv/bin:$PATH \
    PYTHONUNBUFFERED=1
# tini passes signals on: `lakejoin realtime` ends after the batch under way.
ENTRYPOINT ["tini", "--", "lakejoin"]
CMD ["--help"]
