"""`python -m slow_twins < questions.jsonl > answers.jsonl`"""

import json
import sys

from slow_twins import pods

for line in sys.stdin:
    sys.stdout.write(json.dumps(pods.answer(json.loads(line))) + "\n")
