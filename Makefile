# Everything a developer types. `make` alone lists it; CI runs `make test` and nothing else.

VENV := .venv/bin
LAYERS := unit contract tidy simulation browser reliability spark
# A lane more than there are cores, as some of the tests wait: tests/support/lanes.py says what runs beside what.
LANES := $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) + 1)))
PYTEST = $(VENV)/pytest --lanes $(LANES)

# Spark starts its Python workers with PATH's python3 unless it is told otherwise, and itself from SPARK_HOME
# where that is set: both must be the ones in .venv.
unexport SPARK_HOME
# Tests and Spark start hundreds of Python processes: each would compile every module again.
unexport PYTHONDONTWRITEBYTECODE
export PYSPARK_PYTHON := $(CURDIR)/.venv/bin/python
export PYSPARK_DRIVER_PYTHON := $(PYSPARK_PYTHON)

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup setup-demo setup-demo-kafka setup-demo-replicas demo demo-kafka demo-replicas demo-branch test quick mutants durations lint typecheck typecheck-product typecheck-benchmarks docs dist reliability chaos fuzz seeds examples s3 bench bench-soak bench-peers compat image clean $(LAYERS:%=test-%)

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{ printf "%-18s %s\n", $$1, $$2 }'
	@echo '  make test-LAYER  one layer of tests: $(LAYERS)'

# Each part installs what it needs into .venv, and does nothing when it is up to date.
setup: ## .venv with all that these commands need
	@.ci/setup test

setup-demo setup-demo-kafka setup-demo-replicas: setup-%:
	@.ci/setup $*

demo: setup-demo ## the main job on real data: flights in, delays out
	@$(VENV)/tidelog demo

demo-kafka: setup-demo-kafka ## a Kafka client produces the flights through a broker while Spark streams them
	@$(VENV)/tidelog demo --kafka

demo-replicas: setup-demo-replicas ## on a store of four nodes, of which one is killed and one wiped meanwhile; Go builds it
	@$(VENV)/tidelog demo --replicas

demo-branch: setup-demo ## a bad producer is taken out of a lake again: a cut, a branch, a diff, a rewind
	@$(VENV)/tidelog demo --branch

test: setup ## style, types and every layer of tests, as CI does
	@$(PYTEST) tests $(PYTEST_ARGS)

quick: setup ## style, types and unit tests: some minutes, for each save
	@$(PYTEST) tests/tidy tests/unit --hypothesis-profile=quick $(PYTEST_ARGS)

mutants: setup ## bugs planted into the product, each of which a simulation must find
	@TIDELOG_MUTANTS=all $(PYTEST) tests/simulation/test_planted_bugs.py $(PYTEST_ARGS)

durations: ## tests/durations.tsv, by which the lanes are filled, from the newest run
	@PYTHONPATH=tests $(VENV)/python -m support.lanes

lint: setup ## style only (ruff)
	@$(VENV)/ruff check .
	@$(VENV)/ruff format --check .

typecheck: typecheck-product typecheck-benchmarks ## types only (mypy --strict)

typecheck-product: setup
	@MYPYPATH=platform $(VENV)/mypy -p tidelog -p pyspark_tidelog

typecheck-benchmarks: setup
	@cd benchmarks && MYPYPATH=. $(CURDIR)/$(VENV)/mypy --config-file ../pyproject.toml --explicit-package-bases *.py

$(LAYERS:%=test-%): test-%: setup
	@$(PYTEST) tests/$* $(PYTEST_ARGS)

docs: setup ## these pages as a site in build/site
	@NO_MKDOCS_2_WARNING=1 $(VENV)/mkdocs build --quiet
	@echo 'build/site/index.html; with search: $(VENV)/python -m http.server -d build/site'

dist: setup ## wheel and sdist in dist/, tried in empty environments with and without Spark
	@rm -rf dist
	@$(VENV)/python -m build --outdir dist .
	@TIDELOG_DIST=$(CURDIR)/dist $(VENV)/pytest tests/contract/test_distributions.py tests/spark/test_distribution_spark.py $(PYTEST_ARGS)

reliability: chaos fuzz seeds examples s3 ## ten minutes of faults on real processes, a million strange requests and batches, more seeds, examples and suites on S3

chaos: setup
	@$(VENV)/python tests/reliability/chaos.py $(RELIABILITY_ARGS)

fuzz: setup
	@$(VENV)/python tests/reliability/fuzz_batches.py
	@$(VENV)/python tests/reliability/fuzz_requests.py $(FUZZ_ARGS)

seeds: setup
	@TIDELOG_SIM_SEEDS=$${TIDELOG_SIM_SEEDS:-400} $(PYTEST) tests/simulation $(PYTEST_ARGS)

examples: setup
	@$(PYTEST) tests/unit tests/contract -m hypothesis --hypothesis-profile=night $(PYTEST_ARGS)

s3: setup
	@TIDELOG_S3=all $(PYTEST) tests/contract/s3 $(PYTEST_ARGS)

bench: setup ## tidelog's own tables of docs/speed.md, measured here
	@$(VENV)/python benchmarks/run.py $(BENCH_ARGS)

bench-soak: setup ## ten minutes of appends at full rate
	@$(VENV)/python benchmarks/soak.py $(BENCH_ARGS)

# What only this needs is not in every .venv.
bench-peers: setup setup-demo-replicas ## tidelog beside Kafka and plain Delta, measured here; Go builds a store
	@$(VENV)/python -I -c 'import confluent_kafka, matplotlib' 2>/dev/null || $(VENV)/python -m pip install --quiet --disable-pip-version-check --no-input 'tidelog[peers]'
	@$(VENV)/python benchmarks/peers/run.py $(BENCH_ARGS)

# Cargo, Go, Node, a JDK and a C++ compiler must be there; what they fetch and build stays in .venv.
compat: setup ## other projects' suites, old and new Kafka clients and Kafka's tools at brokers
	@$(VENV)/python tests/compat/run.py $(COMPAT_ARGS)

image: ## container images, by docker, podman or buildah; IMAGE, TAG and BUILDER choose
	@deploy/image/build

clean: ## what make made, except .venv
	rm -rf build dist tidelog.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	rm -rf artifacts demo-lake demo-branch-lake spark-warehouse metastore_db derby.log
	find . -name .venv -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +
