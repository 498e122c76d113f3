# The front door: each target is one script.

.PHONY: demo test test-all bench bench-peers check fuzz soak clean

demo: ; @scripts/demo
test: ; @scripts/test
test-all: ; @scripts/test-all
bench: ; @scripts/bench
bench-peers: ; @scripts/bench-peers
check: ; @scripts/check
fuzz: ; @scripts/fuzz
soak: ; @scripts/soak
clean: ; rm -rf build
