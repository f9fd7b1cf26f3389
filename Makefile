# The caches lie outside the work tree: what was fetched or built once serves every clone.
export LAGWARDEN_CACHE ?= $(shell scripts/cache-dir)
export CARGO_TARGET_DIR ?= $(LAGWARDEN_CACHE)/target

.PHONY: test check

test: check
	cargo test --locked

check:
	cargo fmt --check
	cargo clippy --locked --all-targets -- -D warnings
