# One image for every process of Slipway (deploy/local/processes.py lists them).
ARG PYTHON_IMAGE=python:3.13-slim-trixie
FROM ${PYTHON_IMAGE} AS assets
WORKDIR /src
COPY requirements/bootstrap.txt requirements/dev.txt requirements/
RUN python -m venv /venv \
    && /venv/bin/pip install --no-cache-dir --require-hashes -r requirements/bootstrap.txt \
    && /venv/bin/uv pip sync --require-hashes --python /venv/bin/python requirements/bootstrap.txt requirements/dev.txt
COPY package.json package-lock.json .npmrc ./
COPY deploy/__init__.py deploy/assets.py deploy/
RUN /venv/bin/python -m deploy.assets

FROM ${PYTHON_IMAGE} AS runtime
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PATH=/venv/bin:$PATH
WORKDIR /srv/slipway
COPY requirements/bootstrap.txt requirements/base.txt requirements/
RUN python -m venv /venv \
    && /venv/bin/pip install --no-cache-dir --require-hashes -r requirements/bootstrap.txt \
    && /venv/bin/uv pip sync --require-hashes --python /venv/bin/python requirements/bootstrap.txt requirements/base.txt \
    && useradd --system --uid 10001 --home-dir /var/lib/slipway --create-home slipway
COPY manage.py ./
COPY portal portal
COPY fleet fleet
COPY models_app models_app
COPY routing routing
COPY templates templates
COPY deploy/__init__.py deploy/
COPY deploy/envoy deploy/envoy
COPY --from=assets /src/node_modules/slipway-static node_modules/slipway-static
ENV SLIPWAY_STATIC_ROOT=/srv/slipway/.static
RUN SLIPWAY_SECRET_KEY=build SLIPWAY_DATABASE_URL=postgresql://build SLIPWAY_VALKEY_URL=redis://build \
    python manage.py collectstatic --noinput --verbosity 0
USER slipway
EXPOSE 8000
CMD ["uvicorn", "portal.asgi:application", "--host", "0.0.0.0", "--port", "8000", "--lifespan", "off"]
