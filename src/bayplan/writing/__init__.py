"""Results in the output formats: tables and text, JSON, YAML, HTML, SARIF and others. It makes no decisions."""
