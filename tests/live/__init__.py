"""A real API server to test against, and the tests that need one. How to run them: docs/how-to/test-against-a-real-api-server.md."""
