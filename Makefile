# Everything goes through the go command; this file only keeps the flags.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-builtin-rules --no-print-directory
.DEFAULT_GOAL := all

# The version of this commit; hack/version.sh explains its form.
ifndef VERSION
VERSION := $(or $(shell hack/version.sh),$(error hack/version.sh failed))
endif
COMMIT  ?= $(shell git rev-parse --verify --quiet HEAD 2>/dev/null)
DATE    ?= $(shell TZ=UTC git show -s --format=%cd --date=format-local:%Y-%m-%dT%H:%M:%SZ 2>/dev/null)

# The image that "make docker-build" builds and provider-components.yaml refers to. Tags have no "+".
IMG ?= drover-dev/manager:$(subst +,_,$(VERSION))
# Kubernetes versions or minors to build, or "all"; empty means the default version.
KUBE_VERSIONS ?=
PREFIX ?= /usr/local
# More flags for go test, such as TESTFLAGS='-run TestUp -v', the order of tests, and packages.
TESTFLAGS ?=
SEED  ?=
PKG   ?=
# What "make deflake" runs, how often, beside how many busy processes.
RUN   ?=
COUNT ?= 50
LOAD  ?= $(shell getconf _NPROCESSORS_ONLN)
FUZZTIME ?= 1m

# The same flags everywhere, so that binaries, linters, generators and Kubernetes share one build
# cache. Only the race detector, which requires cgo, compiles everything again. Without debug
# information, compiling takes a tenth less time; panics still name files and lines.
export CGO_ENABLED = 0
FLAGS := -trimpath -buildvcs=false -gcflags=all=-dwarf=false
export GOFLAGS := $(FLAGS) $(filter-out $(FLAGS),$(GOFLAGS))

VERSION_PACKAGE := github.com/drover-dev/drover/internal/base/version
LDFLAGS := -s -w -X $(VERSION_PACKAGE).version=$(VERSION) -X $(VERSION_PACKAGE).commit=$(COMMIT) -X $(VERSION_PACKAGE).date=$(DATE)
BUILD     = go run ./hack/build --ldflags '$(LDFLAGS)' --kubernetes '$(KUBE_VERSIONS)'
TOOL     := go tool -modfile=hack/tools/go.mod
LINT     := $(TOOL) golangci-lint

##@ Build

.PHONY: all
all: build provider-components.yaml ## Build everything: binaries in bin/, and provider-components.yaml

.PHONY: build
build: ## Build bin/drover, bin/manager and bin/clusterctl
	@$(BUILD) drover payload manager clusterctl

.PHONY: drover
drover: ## Build bin/drover with Kubernetes inside
	@$(BUILD) drover payload

.PHONY: manager
manager: ## Build bin/manager, only the controllers
	@$(BUILD) manager

.PHONY: clusterctl
clusterctl: ## Build bin/clusterctl from the Cluster API version that Drover runs
	@$(BUILD) clusterctl

.PHONY: provider-components.yaml
provider-components.yaml: ## Render the manifest that "kubectl apply" installs on a cluster
	@mkdir -p bin
	go run ./hack/components --image '$(IMG)' > bin/$@.tmp
	@mv bin/$@.tmp $@

.PHONY: kube
kube: ## Build Kubernetes into the user's cache (KUBE_VERSIONS='1.36 1.35' or all)
	@$(BUILD) kube

.PHONY: node
node: ## Build Kubernetes and the machine image into the user's cache
	@$(BUILD) kube node

.PHONY: flux
flux: ## Build the Flux controllers into the user's cache
	@$(BUILD) flux

.PHONY: flux-images
flux-images: flux ## Build images of the Flux controllers into bin/, and load them into Docker if it runs here
	@mkdir -p bin
	@for name in source-controller kustomize-controller; do \
		go run ./hack/image --controller $$name --output bin/$$name.tar; \
	done

.PHONY: docker-build
docker-build: manager ## Build the image IMG into bin/image.tar, and load it into Docker if it runs here
	go run ./hack/image --name '$(IMG)' --version '$(VERSION)' --revision '$(COMMIT)' --output bin/image.tar
	@$(MAKE) provider-components.yaml IMG='$(IMG)'

# Platforms of a release, and the file with the private key that signs it.
PLATFORMS   ?= linux/amd64 linux/arm64
SIGNING_KEY ?=

.PHONY: release
release: ## Build archives, SBOMs, checksums, signature and provenance into bin/release (SIGNING_KEY=file)
	@for platform in $(PLATFORMS); do \
		programs=bin/programs/$${platform/\//_}; \
		$(BUILD) --platform $$platform --bin $$programs --flux-dir $$programs/flux flux drover payload clusterctl; \
	done
	go run ./hack/release --version '$(VERSION)' --commit '$(COMMIT)' --date '$(DATE)' --image '$(IMG)' --key '$(SIGNING_KEY)' $(PLATFORMS)

.PHONY: image-name
image-name: ## Print the name of the image that docker-build builds
	@echo '$(IMG)'

.PHONY: install
install: build ## Install drover and clusterctl into PREFIX/bin
	install -d '$(DESTDIR)$(PREFIX)/bin'
	install bin/drover bin/clusterctl '$(DESTDIR)$(PREFIX)/bin'

.PHONY: screenshots
screenshots: ## Take the screenshots of the web UI in docs/images
	@$(BUILD) browser
	go run ./test/screenshots docs/images

.PHONY: clean
clean: ## Remove built files (Kubernetes stays in the user's cache)
	rm -rf bin provider-components.yaml

##@ Try

.PHONY: demo
demo: KUBE_VERSIONS = 1.35
demo: ## Tour Drover on machines of this host: clusters, add-ons, packages, an upgrade
	@hack/demo.sh check
	@$(BUILD) kube node drover
	hack/demo.sh up

.PHONY: demo-down
demo-down: ## Remove everything that the demo created
	hack/demo.sh down

.PHONY: bench
bench: all ## Measure start, memory, idle CPU and recovery
	go run ./test/bench

##@ Develop

# Compilers, API servers and managers of tests collect garbage less often than by default. They use
# a fraction of the memory, and CPU time is what is scarce. Linters hold all packages in memory, 16
# GB with this setting, and collect garbage more often.
test deflake: export GOGC ?= 400

.PHONY: test
test: KUBE_VERSIONS = all
test: all bin/test ## Verify, and run all tests (SEED=N repeats an order, PKG=./internal/... selects packages)
	@$(BUILD) kube node flux browser
	bin/test run -seed='$(SEED)' -package='$(PKG)' -beside='make checks' -- $(TESTFLAGS)

# What "make test" runs beside the tests: "make verify", unless it passed on the same files before.
.PHONY: checks
checks:
	@hack/unchanged.sh verify hack/verify.sh
	@hack/unchanged.sh lint make lint

.PHONY: deflake
deflake: bin/test ## Run one test repeatedly on a busy machine (RUN=TestName COUNT=50 LOAD=2)
	bin/test deflake -run='$(RUN)' -package='$(PKG)' -count='$(COUNT)' -load='$(LOAD)' -seed='$(SEED)'

.PHONY: bin/test
bin/test:
	@go build -o $@ ./hack/test

.PHONY: test-short
test-short: kube bin/test ## Run the quick tests only
	go test -short -exec='$(CURDIR)/bin/test sandbox' $(TESTFLAGS) ./...

.PHONY: fuzz
fuzz: ## Fuzz each parser of foreign input for FUZZTIME
	hack/fuzz.sh '$(FUZZTIME)'

.PHONY: verify
verify: lint ## Check module files, generated files and code
	hack/verify.sh

.PHONY: generate
generate: ## Generate code, manifests and reference pages
	go generate ./...

.PHONY: docs
docs: ## Generate the reference pages of the commands
	go generate ./internal/cli/...

.PHONY: lint
lint: export GOGC = 50
lint: ## Run the linters
	$(LINT) run ./...
	@unformatted=$$(gofmt -l kube test/clients test/s3); [ -z "$$unformatted" ] || { echo "not formatted: $$unformatted"; exit 1; }

.PHONY: fmt
fmt: ## Format the code
	$(LINT) fmt

.PHONY: tidy
tidy: ## Tidy every module file
	hack/modules.sh go mod tidy

.PHONY: help
help: ## Show this help
	@awk 'BEGIN { FS = ":.*## " } /^##@/ { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z.-]+:.*## / { printf "  %-26s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
