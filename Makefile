# The commands of this project; `make help` lists them. A command that needs more than one line is
# Rust, in xtask/, so that it is the same on every machine and in CI.

CARGO ?= cargo
XTASK  = $(CARGO) run --quiet --package xtask --

.DEFAULT_GOAL := help
.PHONY: help run test docs bench report fuzz audit crates sanitize shuttle soak node python packages test-packages plugin server server-stop test-mariadb test-mariadb-full test-apps linker

help: ## List these commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

run: linker ## Load and query FronDB, load a B-tree beside it, report with a chart (under 3 minutes)
	$(CARGO) run --release --package frondb-bench -- run

test: linker ## All checks: format, layers, modules, tidy, lints, all tests (under 8 minutes once built)
	@$(XTASK) test

docs: linker ## Build the documentation site, target/site/index.html, and check its links
	@$(XTASK) site

# Make ignores a misspelt variable, and the benchmark would run for an hour with the wrong settings.
# $(call only,NAMES) stops if the command line sets any other variable.
only = $(foreach v,$(MAKEOVERRIDES),$(if $(findstring =,$v),$(if $(filter $(1:%=%=%) CARGO=%,$v),,\
	$(error unknown variable $v; known are $1))))

BENCH = WORKLOAD ENGINES ROWS MEMORY JSON ROUNDS DIR DISK THREADS SECONDS SLICES
BENCH += SLICE_SECONDS KINDS CODECS LIMIT_SECONDS WARM_UP_SECONDS READ_SCALE READ_SECONDS RATIOS LOAD_MEMORY

bench: linker ## Compare engines: WORKLOAD= ENGINES= ROWS= MEMORY= JSON= ROUNDS= DIR= DISK= THREADS= SECONDS= SLICES= SLICE_SECONDS= KINDS= CODECS= LIMIT_SECONDS= WARM_UP_SECONDS= READ_SCALE= READ_SECONDS= RATIOS= LOAD_MEMORY= (all optional)
	@$(call only,$(BENCH))
	@$(XTASK) bench $(foreach v,$(BENCH),$(if $($v),'$v=$($v)'))

report: linker ## Measure all figures of docs/benchmarks.md, docs/heritage.md and README.md, and write them (90 minutes): SCALE= DIR= STEPS=, RENDER=1 only writes
	@$(call only,RENDER SCALE DIR STEPS)
	@$(XTASK) report $(foreach v,RENDER SCALE DIR STEPS,$(if $($v),'$v=$($v)'))

fuzz: linker ## Fuzz the decoders with libFuzzer (nightly): TARGET= SECONDS=
	@$(call only,TARGET SECONDS)
	@$(XTASK) fuzz $(foreach v,TARGET SECONDS,$(if $($v),'$v=$($v)'))

audit: linker ## Licences, bans and sources of all dependencies (cargo-deny)
	@$(XTASK) audit

crates: linker ## Make the packages of the library as for crates.io, and build each of them alone
	@$(XTASK) crates

sanitize: linker ## Tests of the crates with unsafe code, under address sanitizer or valgrind
	@$(XTASK) sanitize

shuttle: linker ## Concurrency tests under the shuttle scheduler (part of test)
	@$(XTASK) shuttle

soak: linker ## The random tests of test, longer and on new seeds: TIMES= MINUTES= SEED= (two hours)
	@$(call only,TIMES MINUTES SEED)
	@$(XTASK) soak $(foreach v,TIMES MINUTES SEED,$(if $($v),'$v=$($v)'))

node: linker ## Build the package for Node.js into target/node/dist, and test it: PLATFORMS=x64,arm64
	@$(call only,PLATFORMS)
	@$(XTASK) node $(if $(PLATFORMS),PLATFORMS=$(PLATFORMS))

python: linker ## Build the wheel and the source distribution for Python into target/python/dist, and test them
	@$(XTASK) python

packages: linker ## Build packages for Debian into target/packages/SUITE: SUITE=bookworm (default) or trixie
	@$(call only,SUITE)
	@$(XTASK) packages $(if $(SUITE),SUITE=$(SUITE))

test-packages: linker ## Install, use, upgrade and remove the packages in a root folder: SUITE=, REPRODUCE=1 builds twice and compares
	@$(call only,SUITE REPRODUCE)
	@$(XTASK) test-packages $(foreach v,SUITE REPRODUCE,$(if $($v),'$v=$($v)'))

plugin: linker ## Build ha_frondb.so, the storage engine for Debian's MariaDB server: SERVER=10.11 or 11.8
	@$(call only,SERVER)
	@$(XTASK) plugin $(if $(SERVER),SERVER=$(SERVER))

server: linker ## Start a private MariaDB server with ENGINE=FronDB, and a client: SERVER=
	@$(call only,SERVER)
	@$(XTASK) server $(if $(SERVER),SERVER=$(SERVER))

server-stop: linker ## Stop it
	@$(XTASK) server-stop

test-mariadb: linker ## Tests of ENGINE=FronDB on private servers (part of test): SERVER=
	@$(call only,SERVER)
	@$(XTASK) test-mariadb $(if $(SERVER),SERVER=$(SERVER))

test-mariadb-full: linker ## MariaDB's suites that take any engine, with FronDB and with InnoDB (an hour): SERVER=
	@$(call only,SERVER)
	@$(XTASK) test-mariadb-full $(if $(SERVER),SERVER=$(SERVER))

test-apps: linker ## Schemas of Debian's applications on FronDB and on InnoDB, compared (a minute)
	@$(XTASK) test-apps

# A C compiler is the only tool that cargo cannot install; building xtask needs it.
linker:
	@command -v $(CARGO) >/dev/null || { echo "Rust is missing: install it with rustup, then try again" >&2; exit 1; }
	@command -v cc >/dev/null || if [ "$$(id -u)" = 0 ]; then \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qqy --no-install-recommends gcc libc6-dev; \
	else echo "a C compiler is missing: sudo apt-get install -y gcc libc6-dev" >&2; exit 1; fi
