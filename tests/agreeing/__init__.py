"""Random questions of `decide`, put to the real schedulers and to Bayplan: `make agree`."""
