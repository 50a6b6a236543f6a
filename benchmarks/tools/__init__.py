"""What benchmarks and tests share: a server, a browser, a viewer; and the guard and the mutations."""
