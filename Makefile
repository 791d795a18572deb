# Everything goes through the go command; this file only remembers the flags.

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

# The image that "make docker-build" makes and provider-components.yaml names. Tags have no "+".
IMG ?= drover-dev/manager:$(subst +,_,$(VERSION))
# Kubernetes versions or minors to build, "all" for every one; empty: the default one.
KUBE_VERSIONS ?=
PREFIX ?= /usr/local
# More flags for go test, such as TESTFLAGS='-run TestUp -v'.
TESTFLAGS ?=
FUZZTIME ?= 30s

# The same flags for all that is compiled: a package that is in the build cache
# for the binaries is there for the linter, the generators and Kubernetes too.
# Only the race detector, which needs cgo, compiles anew.
export CGO_ENABLED = 0
export GOFLAGS := -trimpath -buildvcs=false $(filter-out -trimpath -buildvcs=%,$(GOFLAGS))

VERSION_PACKAGE := github.com/drover-dev/drover/internal/base/version
LDFLAGS := -s -w -X $(VERSION_PACKAGE).version=$(VERSION) -X $(VERSION_PACKAGE).commit=$(COMMIT) -X $(VERSION_PACKAGE).date=$(DATE)
CAPI     := sigs.k8s.io/cluster-api
TOOL     := go tool -modfile=hack/tools/go.mod
LINT     := $(TOOL) golangci-lint

##@ Build

.PHONY: all
all: build provider-components.yaml ## Build everything: binaries in bin/, and provider-components.yaml

.PHONY: build
build: drover manager clusterctl ## Build bin/drover, bin/manager and bin/clusterctl

.PHONY: drover
drover: ## Build bin/drover with Kubernetes inside
	go build -ldflags '$(LDFLAGS)' -o bin/drover ./cmd/drover
	@go run ./hack/kube payload --into bin/drover

.PHONY: manager
manager: ## Build bin/manager, the controllers alone
	go build -ldflags '$(LDFLAGS)' -o bin/manager ./cmd/manager

.PHONY: clusterctl
clusterctl: ## Build bin/clusterctl, upstream's, of the Cluster API version that Drover runs
	v=$$(go list -m -f '{{.Version}}' $(CAPI)); IFS=. read -r major minor _ <<<"$${v#v}"; \
	go build -ldflags "-s -w -X $(CAPI)/version.gitVersion=$$v -X $(CAPI)/version.gitMajor=$$major -X $(CAPI)/version.gitMinor=$$minor" \
		-o bin/clusterctl $(CAPI)/cmd/clusterctl

.PHONY: provider-components.yaml
provider-components.yaml: ## Render what "kubectl apply" installs on a cluster
	@mkdir -p bin
	go run ./hack/components --image '$(IMG)' > bin/$@.tmp
	@mv bin/$@.tmp $@

.PHONY: kube
kube: ## Build Kubernetes into the user's cache (KUBE_VERSIONS='1.36 1.35' or all)
	go run ./hack/kube $(if $(filter all,$(KUBE_VERSIONS)),--all,--version '$(KUBE_VERSIONS)')

.PHONY: node
node: kube ## Build what local machines boot from into the user's cache
	go run ./hack/node

.PHONY: docker-build
docker-build: manager ## Build the image IMG into bin/image.tar, and load it if docker runs here
	go run ./hack/image --name '$(IMG)' --version '$(VERSION)' --revision '$(COMMIT)' --output bin/image.tar
	@$(MAKE) provider-components.yaml IMG='$(IMG)'

.PHONY: image-name
image-name: ## Print the name of the image that docker-build makes
	@echo '$(IMG)'

.PHONY: install
install: build ## Install drover and clusterctl into PREFIX/bin
	install -d '$(DESTDIR)$(PREFIX)/bin'
	install bin/drover bin/clusterctl '$(DESTDIR)$(PREFIX)/bin'

.PHONY: clean
clean: ## Remove what was built here (Kubernetes stays in the user's cache)
	rm -rf bin provider-components.yaml

##@ Try

.PHONY: demo
demo: KUBE_VERSIONS = all
demo: all node ## The whole story on machines of this host: clusters, add-ons, packages, upgrades
	hack/demo.sh up

.PHONY: demo-down
demo-down: ## Remove all traces of the demo
	hack/demo.sh down

.PHONY: bench
bench: all ## Measure start, memory, idle CPU and recovery
	go run ./test/bench

##@ Develop

.PHONY: test
test: KUBE_VERSIONS = all
test: all node verify ## Verify, then run all tests
	hack/test.sh $(TESTFLAGS)

.PHONY: test-short
test-short: kube ## Run the quick tests only
	go test -short -shuffle=on $(TESTFLAGS) ./...

.PHONY: fuzz
fuzz: ## Fuzz each parser of foreign input for FUZZTIME
	hack/fuzz.sh '$(FUZZTIME)'

.PHONY: verify
verify: ## Check module files, generated files and code; changes nothing that is right
	hack/verify.sh

.PHONY: generate
generate: ## Generate code, manifests and reference pages
	go generate ./...

.PHONY: docs
docs: ## Generate the reference pages of the commands
	go generate ./internal/cli/...

.PHONY: lint
lint: ## Run the linters
	$(LINT) run ./...
	for module in kubernetes node coredns; do go vet -C kube/$$module ./...; done

.PHONY: fmt
fmt: ## Format the code
	$(LINT) fmt

.PHONY: tidy
tidy: ## Tidy every module file
	hack/modules.sh go mod tidy

.PHONY: help
help: ## Show this
	@awk 'BEGIN { FS = ":.*## " } /^##@/ { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z.-]+:.*## / { printf "  %-26s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
