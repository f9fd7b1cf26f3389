# The caches lie outside the work tree: what was fetched or built once serves every clone.
export LAGWARDEN_CACHE ?= $(shell scripts/cache-dir)
export CARGO_TARGET_DIR ?= $(LAGWARDEN_CACHE)/target

.PHONY: demo demo-cluster test check tools bench generate

# A real primary and two standbys, lag made and healed, in under a minute after the build.
demo:
	cargo build --locked -q
	PGBIN="$$(scripts/get-postgresql any)" $(CARGO_TARGET_DIR)/debug/lagwarden --log error demo

# The same through a real API server and kube-proxy, as kubectl shows it. Needs root, for network namespaces.
demo-cluster: tools
	LAGWARDEN_SHOW=1 cargo test --locked -q --test e2e -- story

test: check tools
	cargo test --locked

check:
	cargo fmt --check
	cargo clippy --locked --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings -A rustdoc::private_intra_doc_links" cargo doc --locked -q --no-deps --document-private-items
	"$$(scripts/get-deny)" --log-level error check bans licenses sources

# The servers that the tests start; each says what is missing when it cannot be had.
tools:
	scripts/get-tools
	scripts/get-kubernetes >/dev/null
	scripts/get-postgresql any >/dev/null

# How late it is and what it costs, from a build as it is released.
bench: tools
	cargo bench --locked --bench cluster

# Files that are committed and made by the code.
generate:
	LAGWARDEN_GENERATE=1 cargo test --locked -q --test generated
