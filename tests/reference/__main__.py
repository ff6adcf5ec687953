"""`python -m reference < questions.jsonl > answers.jsonl`"""

import json
import sys

from reference import pods

for line in sys.stdin:
    sys.stdout.write(json.dumps(pods.answer(json.loads(line))) + "\n")
