# election: what there is to do. "make help" lists it.
#
# Everything works on a machine that has Go, git and a C compiler (the race
# detector needs it): servers and linters are built from pinned sources into the
# user's cache, once per version.

SHELL := /bin/bash

GO      ?= go
STORE   ?=
IMAGE   ?= elect

CACHE   := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/election-test

# Beside those of go.work, which are looked at with "go vet work" and its like.
MODULES := tools bench test/deploy test/servers/etcd test/servers/consul

# The oldest release of Go that is promised, as each go.mod has it.
FLOOR := $(shell awk '$$1 == "go" { print $$2 }' go.mod)

# Explored move by move, where each goroutine has a world of its own: the race detector would find
# nothing, and takes several times as long.
PURE := github.com/electkv/election/backends/paxos/internal/lease github.com/electkv/election/internal/invitation github.com/electkv/election/internal/machine

# They simulate broken engines and stores, or a small model of one, many times. The race detector watches
# the simulation of the real engine, and the cases of kv/kvtest at work on real stores.
PLANTED := TestEachPlantedBugIsCaughtInTheSimulation|TestEachBreachIsNoticedAndEachCaseNoticesOne|TestTermsThatShareLeasesAreSafeInTheSimulation|TestTheBugsOfSharedLeasesAreCaughtInTheSimulation

# Simulates the real engine. A tenth of it is enough for the race detector, with which it takes several times as long.
SIMULATION := TestTheEngineKeepsItsPromisesInTheSimulation

# Builds the last release, for which a checkout needs its history.
ROLLOUT := TestCandidatesOfTwoReleasesKeepThePromises

# What make test leaves to make test/all: fleets of processes, rollouts, the fault table, linearizability,
# models that are explored move by move, and the tests of what starts servers for tests.
LONG := /test/(faults|interop|interop/migrate|linear|succession|testenv)$$|/internal/(machine|lease)$$

# They take the longest, so they go first, and mostly wait.
SLOW := $(addprefix github.com/electkv/election/,cmd/elect test/sql backends/etcd backends/consul backends/redis)

# What make test/all begins with: after those, it has three that make test leaves out.
SLOW_ALL := $(SLOW) $(addprefix github.com/electkv/election/,test/succession test/linear test/testenv)

# Its bounds on the time until there is a leader allow for a busy machine, but not for other tests.
FAULTS := github.com/electkv/election/test/faults

# They count the requests of a thousand candidates, or hold a hundred terms in real time, which a
# busy machine can do, but not beside other tests.
ALONE := TestRequestsOfAHandoverAreTheSameForTwoAndForAThousand|TestAHundredElectionsOfAProcessKeepTheirTermsAtAnAgentsDefaultLimit|TestTermsSurviveAnotherProcessThatTakesAllConnectionsOfTheirAddress

# How many packages are tested at once: most of them wait most of the time. With the race detector
# they compute more.
AT_ONCE      := 4
AT_ONCE_RACE := 3

# The packages that other systems than Linux can use. The rest needs Unix.
PORTABLE := . ./kv/... ./backends/mem/... ./backends/file/... ./backends/etcd/... ./backends/consul/... ./backends/redis/... ./backends/sql/... ./backends/paxos/... ./observe/otel ./observe/prom ./group

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z][a-z\/-]*:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## build the command: bin/elect
	$(GO) build -o bin/elect ./cmd/elect

.PHONY: demo
demo: ## elect a leader, kill it, check the promises (STORE=redis://… for another store)
	$(GO) run ./cmd/elect demo $(if $(STORE),--store $(STORE))

.PHONY: check
check: check/format check/vet check/types check/lint check/modules check/floor check/docs check/deploy ## all checks that need no server

.PHONY: check/format
check/format: ## gofmt
	@files=$$(gofmt -l $$(git ls-files --cached --others --exclude-standard '*.go')); \
	if [ -n "$$files" ]; then printf 'not formatted with gofmt:\n%s\n' "$$files"; exit 1; fi

.PHONY: check/vet
check/vet: ## go vet
	$(GO) vet work
	cd test/deploy && GOWORK=off $(GO) vet ./...
	cd bench && GOWORK=off $(GO) vet ./...

.PHONY: check/types
check/types: bin/typecheck ## type-check what macOS and Windows can use
	GOOS=darwin CGO_ENABLED=0 bin/typecheck work
	GOOS=windows CGO_ENABLED=0 bin/typecheck -test=false $(PORTABLE)

.PHONY: bin/typecheck
bin/typecheck: ## build the type checker
	cd tools && GOWORK=off $(GO) build -o ../bin/typecheck ./typecheck

.PHONY: check/lint
check/lint: ## golangci-lint, as tools/go.mod pins it (built once)
	@lint=$$(CACHE='$(CACHE)' GO='$(GO)' tools/golangci-lint.sh) && dirs=$$($(GO) list -m -f '{{.Dir}}/...') && echo "golangci-lint run" $$dirs && "$$lint" run $$dirs && \
	for dir in test/deploy bench; do \
		echo "golangci-lint run ./... ($$dir)" && (cd $$dir && GOWORK=off "$$lint" run ./...) || exit 1; \
	done

.PHONY: check/modules
check/modules: ## go.mod and go.sum of every module are tidy, and the modules what they were
	@GO='$(GO)' tools/alone.sh $(GO) mod tidy -diff
	$(GO) mod verify
	$(GO) test -count=1 ./test/modules
	@for dir in $(MODULES); do \
		echo "go mod tidy -diff && go mod verify ($$dir)"; \
		(cd $$dir && GOWORK=off $(GO) mod tidy -diff && GOWORK=off $(GO) mod verify) || exit 1; \
	done

.PHONY: check/floor
check/floor: bin/typecheck ## type-check each module by itself with the oldest supported Go
	@export GOTOOLCHAIN=go$(FLOOR); $(GO) version || { unset GOTOOLCHAIN; \
	echo "Go $(FLOOR) cannot be had here, so this is tried with another one:"; $(GO) version; }; \
	GO='$(GO)' tools/alone.sh '$(CURDIR)/bin/typecheck' -test=false ./...

.PHONY: check/docs
check/docs: ## documents keep to their form, links lead somewhere
	$(GO) test -count=1 ./test/docs

.PHONY: check/release
check/release: ## the configuration of goreleaser, which is built once, as tools/goreleaser/go.mod pins it
	@for dir in tools/goreleaser tools/syft; do \
		echo "go mod tidy -diff && go mod verify ($$dir)"; \
		(cd $$dir && GOWORK=off $(GO) mod tidy -diff && GOWORK=off $(GO) mod verify) || exit 1; \
	done
	CACHE='$(CACHE)' GO='$(GO)' tools/goreleaser.sh check

.PHONY: check/deploy
check/deploy: ## the manifests of Kubernetes, the dashboard and, where promtool and systemd-analyze are, the alerts and the systemd units
	cd test/deploy && GOWORK=off $(GO) test -count=1 ./manifest
	@if command -v systemd-analyze >/dev/null; then cd test/deploy && GOWORK=off $(GO) test -count=1 ./unit; \
	else echo "systemd-analyze is not here: deploy/systemd was not checked (Debian, Ubuntu: apt-get install systemd)"; fi
	@skip='^TestEveryQueryHasAnAnswerInARecordedRun$$'; \
	if ! ls $$(command -v promtool) /var/cache/election-test/bin/promtool '$(CACHE)/packages/bin/promtool' 2>/dev/null | grep -q .; then \
	skip="$$skip|^TestAlertsFireWhenTheyShouldAndOnlyThen$$"; \
	echo "promtool is not here: deploy/prometheus was not tried (make test gets it; Debian, Ubuntu: apt-get install prometheus)"; fi; \
	echo "go test -skip='$$skip' ./test/observe" && $(GO) test -count=1 -skip="$$skip" ./test/observe

.PHONY: test
test: ## the tests, on real servers, which are fetched first; without variants and long tables
	@echo "make test: on real servers, in short mode. make test/all has the long tables and the race detector."; \
	env=$$($(GO) run ./internal/testenv/cmd/servers) && eval "$$env" && \
	$(GO) run ./test/tally -short -count=1 -vet=off -timeout=15m -p=$(AT_ONCE) -skip='^($(PLANTED))$$' $(SLOW) $$($(GO) list work | grep -vE '$(LONG)' | grep -vxF $(addprefix -e ,$(SLOW)))

.PHONY: test/all
test/all: ## all tests with the race detector, on real servers, which are fetched first
	@env=$$($(GO) run ./internal/testenv/cmd/servers) && eval "$$env" || exit 1; failed=; \
	without='$(PLANTED)|$(SIMULATION)|$(ALONE)'; \
	if ! git -c safe.directory='*' cat-file -e "$$(tools/last-release.sh)^{commit}" 2>/dev/null; then without="$$without|$(ROLLOUT)"; \
	echo "this checkout does not have its history, so $(ROLLOUT) is not run (git fetch --unshallow)"; fi; \
	echo "go test -race -count=1 work (but test/interop, $(FAULTS), $(PURE) and '$$without')" && \
	$(GO) run ./test/tally -race -count=1 -vet=off -timeout=45m -p=$(AT_ONCE_RACE) -skip="^($$without)$$" $(SLOW_ALL) $$($(GO) list work | grep -v /test/interop | grep -vxF $(addprefix -e ,$(FAULTS) $(PURE) $(SLOW_ALL))) || failed=1; \
	echo "go test -race -count=1 $(FAULTS) (but '$$without')" && $(GO) run ./test/tally -race -count=1 -vet=off -timeout=30m -skip="^($$without)$$" $(FAULTS) || failed=1; \
	echo "go test -race -count=1 -run='$(ALONE)' ./backends/consul ./test/succession" && \
	$(GO) run ./test/tally -race -count=1 -vet=off -timeout=15m -p=1 -run='^($(ALONE))$$' ./backends/consul ./test/succession || failed=1; \
	echo "go test -race -count=1 -run=$(SIMULATION) . -args -sim.terms=1000" && $(GO) run ./test/tally -race -count=1 -vet=off -timeout=15m -run='^$(SIMULATION)$$' . -args -sim.terms=1000 || failed=1; \
	echo "go test -count=1 -run='$(PLANTED)|$(SIMULATION)' . ./kv/kvtest" && $(GO) run ./test/tally -count=1 -vet=off -timeout=15m -run='^($(PLANTED)|$(SIMULATION))$$' . ./kv/kvtest || failed=1; \
	echo "go test -count=1 $(PURE)" && $(GO) run ./test/tally -count=1 -vet=off -timeout=15m $(PURE) || failed=1; \
	echo "go test -count=1 -run=SQLite ./test/sql" && $(GO) run ./test/tally -count=1 -vet=off -timeout=15m -run=SQLite ./test/sql || failed=1; \
	echo "go test -race -count=1 ./... (test/interop)" && \
	(cd test/interop && $(GO) run github.com/electkv/election/test/tally -race -count=1 -vet=off -timeout=15m ./...) || failed=1; \
	[ -z "$$failed" ]

.PHONY: test/interop
test/interop: ## fleets of old locks and candidates, on real servers (STRETCH=15s SEED=1)
	@env=$$($(GO) run ./internal/testenv/cmd/servers) && eval "$$env" && \
	cd test/interop && $(GO) test -v -count=1 -timeout=0 . -interop.stretch=$(or $(STRETCH),15s) -interop.seed=$(or $(SEED),0)

.PHONY: test/rollout
test/rollout: ## candidates of the last release and of this commit in one election, on real servers (OLD=v1.2.3 STORE=etcd)
	@env=$$($(GO) run ./internal/testenv/cmd/servers) && eval "$$env" && \
	$(GO) test -v -count=1 -timeout=1h ./test/faults -run='^TestCandidatesOfTwoReleases' -faults.full -faults.store=$(STORE) $(if $(OLD),-faults.old=$(OLD))

.PHONY: test/deploy
test/deploy: image ## the image, the unit, the manifests and docs/run/compose.md, on a docker engine
	@$(GO) run ./test/compose images busybox:1.37.0 curlimages/curl:8.16.0 redis:8.2.1-alpine
	cd test/deploy && GOWORK=off $(GO) test -v -count=1 -timeout=20m ./...

.PHONY: test/deploy/short
test/deploy/short: image ## the image alone, and elect as the first process of a container
	@$(GO) run ./test/compose images busybox:1.37.0
	cd test/deploy && GOWORK=off $(GO) test -count=1 -timeout=10m -run='Image|ExitStatus|DockerStop|FirstProcess' ./engine

.PHONY: test/short
test/short: ## the tests that need no server: the engine, the contract, the stores of one host
	$(GO) test -race -count=1 . ./test/engine ./internal/scenario ./kv/... ./backends/mem/... ./backends/file/...

.PHONY: test/sim
test/sim: ## the engine in a simulated world, and the planted bugs (TERMS=1000000 SEED=1)
	$(GO) test -v -count=1 -timeout=60m -run='Simulat|Planted' . -args -sim.terms=$(or $(TERMS),200000) -sim.seed=$(or $(SEED),1)

.PHONY: test/faults
test/faults: ## every fault on every store, on real servers (STORE=etcd for one), and 20,000 operations on each
	@env=$$($(GO) run ./internal/testenv/cmd/servers) && eval "$$env" && failed=; \
	echo "go test ./test/faults -faults.full" && \
	$(GO) test -v -count=1 -timeout=3h ./test/faults -faults.full -faults.store=$(STORE) -faults.seed=$(or $(SEED),1) || failed=1; \
	$(if $(STORE),,echo "go test ./test/linear -ops=20000" && \
	$(GO) test -v -count=1 -timeout=2h ./test/linear -args -ops=20000 -seed=$(or $(SEED),1) || failed=1;) \
	[ -z "$$failed" ]

.PHONY: test/soak
test/soak: ## random faults for a time (SOAK=10m STORE=etcd SEED=1 STRETCH=0); STORE=sim simulates a million terms
ifeq ($(STORE),sim)
	$(MAKE) test/sim TERMS=$(or $(TERMS),1000000) SEED=$(or $(SEED),$(shell date +%s))
else
	@env=$$($(GO) run ./internal/testenv/cmd/servers) && eval "$$env" && \
	$(GO) test -v -count=1 -timeout=0 ./test/faults -faults.soak=$(or $(SOAK),10m) -faults.store=$(or $(STORE),etcd) \
		-faults.seed=$(or $(SEED),$(shell date +%s)) -faults.stretch=$(or $(STRETCH),0)
endif

.PHONY: proof
proof: export ELECTION_RESULTS := $(CURDIR)/dist/results
proof: ## all the evidence there is, and docs/reliability.md from it (Linux, root; an hour and a half)
	rm -rf '$(CURDIR)/dist/results'
	$(GO) run ./test/report -begin
	@failed=; \
	$(MAKE) test/soak STORE=sim SEED=1 || failed=1; \
	$(MAKE) test/faults || failed=1; \
	for store in file etcd etcd3 etcd-observed consul consul3 consul-observed redis redis-sentinel redis-cluster redis-observed sqlite postgres postgres-observed mariadb paxos; do \
		$(MAKE) test/soak STORE=$$store SOAK=$(or $(SOAK),1m) SEED=1 || failed=1; \
	done; \
	$(GO) run ./test/report || failed=1; \
	[ -z "$$failed" ]

.PHONY: bench
bench: ## compare with other libraries, and write bench/RESULTS.md (Linux; two hours on a quiet machine)
	@env=$$($(GO) run ./internal/testenv/cmd/servers) && eval "$$env" && cd bench && GOWORK=off $(GO) run . $(BENCH)

.PHONY: test/bench
test/bench: ## each work of the bench once, with few candidates
	@env=$$($(GO) run ./internal/testenv/cmd/servers) && eval "$$env" && cd bench && GOWORK=off $(GO) test -count=1 -timeout=15m .

.PHONY: image
image: ## build the command's container image (IMAGE=elect)
	rm -rf dist/image && install -d dist/image && install -d -m 0700 dist/image/state/elect
	GOOS=linux CGO_ENABLED=0 $(GO) build -trimpath -ldflags='-s -w' -o dist/image/elect ./cmd/elect
	@for bundle in /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/cert.pem; do \
		if [ -e "$$bundle" ]; then install -m 0644 "$$bundle" dist/image/ca-certificates.crt; exit; fi; \
	done; echo "no certificates of authorities on this host: install ca-certificates"; exit 1
	echo 'nonroot:x:65532:65532::/home/nonroot:/sbin/nologin' >dist/image/passwd
	echo 'nonroot:x:65532:' >dist/image/group
	docker build --tag $(IMAGE) --file deploy/Dockerfile dist/image

.PHONY: release
release: ## commit and tag a release of all modules, here (VERSION=v1.2.3); nothing is pushed
	@GO='$(GO)' tools/release.sh $(VERSION)

.PHONY: release/trial
release/trial: ## make a release in a clone, and install it from there
	@GO='$(GO)' tools/release-trial.sh

.PHONY: release/snapshot
release/snapshot: ## build the archives and packages of a release from this commit: dist/release
	CACHE='$(CACHE)' GO='$(GO)' tools/goreleaser.sh release --snapshot --clean --skip=publish

.PHONY: release/publish
release/publish: ## build those of the tag at this commit, and publish them on GitHub (CI does; GITHUB_TOKEN)
	@notes=$$(mktemp) && trap 'rm -f "$$notes"' EXIT && \
	tools/release-notes.sh "$$(git tag --points-at HEAD --list 'v*' --sort=-version:refname | head -n 1)" >"$$notes" && \
	CACHE='$(CACHE)' GO='$(GO)' tools/goreleaser.sh release --clean --release-notes="$$notes"

# Compose is version 2 or 1, whichever there is (or COMPOSE='docker compose').
.PHONY: up
up: ## start etcd, Consul, Redis, PostgreSQL and MariaDB in containers
	@$(GO) run ./test/compose up

.PHONY: cluster
cluster: ## the same, and clusters of three (profile "cluster")
	@$(GO) run ./test/compose cluster

.PHONY: down
down: ## stop the containers and drop what they hold
	@$(GO) run ./test/compose down

ON_CONTAINERS := ELECTION_TEST_ETCD=127.0.0.1:2379 ELECTION_TEST_CONSUL=127.0.0.1:8500 ELECTION_TEST_REDIS=127.0.0.1:6379 \
	ELECTION_TEST_POSTGRES=127.0.0.1:5432 ELECTION_TEST_MYSQL=127.0.0.1:3306

.PHONY: test/compose
test/compose: ## the adapters' tests on the containers' servers, and failovers of the clusters
	@$(GO) run ./test/compose images && $(GO) run ./test/compose cluster
	$(ON_CONTAINERS) $(GO) run ./test/tally -race -count=1 -timeout=15m ./backends/etcd/... ./backends/consul/... ./backends/redis/... ./test/sql
	@$(GO) run ./test/compose failovers

.PHONY: test/compose/short
test/compose/short: ## the demo on each container, and one failover of each cluster; then down
	@$(GO) run ./test/compose images && $(GO) run ./test/compose cluster && $(GO) run ./test/compose quick; status=$$?; \
	$(GO) run ./test/compose down && exit $$status

.PHONY: clean
clean: ## remove what was built here (the servers in the user's cache stay)
	rm -rf bin dist

.PHONY: clean/cache
clean/cache: ## remove the servers and linters that were built, and the containers of servers
	rm -rf '$(CACHE)' /var/cache/election-test*
	@if command -v docker >/dev/null; then docker rm -f election-test-redis election-test-postgres election-test-mariadb >/dev/null 2>&1 || true; fi
