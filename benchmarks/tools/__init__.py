"""Tools of benchmarks and tests: server, browser, viewer, comparison of commits, mutation testing."""
