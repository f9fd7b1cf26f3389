# The caches lie outside the work tree: what was fetched or built once serves every clone.
export LAGWARDEN_CACHE ?= $(shell scripts/cache-dir)
export CARGO_TARGET_DIR ?= $(LAGWARDEN_CACHE)/target

.PHONY: demo test check tools generate

# A real primary and two standbys, lag made and healed, in under a minute after the build.
demo:
	cargo build --locked -q
	PGBIN="$$(scripts/get-postgresql any)" $(CARGO_TARGET_DIR)/debug/lagwarden --log error demo

test: check tools
	cargo test --locked

check:
	cargo fmt --check
	cargo clippy --locked --all-targets -- -D warnings

# The servers that the tests start; each says what is missing when it cannot be had.
tools:
	scripts/get-tools
	scripts/get-kubernetes >/dev/null
	scripts/get-postgresql any >/dev/null

# Files that are committed and made by a command.
generate:
	cargo run --locked -q -- crd > crds/replicapools.lagwarden.io.yaml
