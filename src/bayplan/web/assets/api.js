// Requests to the server that this page is from. The token, if there is one, comes in the fragment of the address, which
// is never sent, and is kept for this tab alone.

const API = "/api/v1";
const TOKEN = "bayplan-token";
const RETRY_SECONDS = [0.5, 1, 2, 5, 10];

export class AnswerError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export function adoptToken() {
  const given = new URLSearchParams(location.hash.slice(1));
  const token = given.get("token");
  if (!token) return;
  sessionStorage.setItem(TOKEN, token);
  given.delete("token");
  history.replaceState(null, "", `#${given}`);
}

function headers(more = {}) {
  const token = sessionStorage.getItem(TOKEN);
  return token ? { ...more, Authorization: `Bearer ${token}` } : more;
}

async function answer(request) {
  let response;
  try {
    response = await request;
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new AnswerError(0, "The server does not answer. Is `bayplan ui` still running?");
  }
  const content = await response.json().catch(() => null);
  if (content === null) throw new AnswerError(response.status, `The server answered ${response.status} without a document.`);
  if (!response.ok) throw new AnswerError(response.status, content.message);
  return content;
}

export function get(what) {
  return answer(fetch(`${API}/${what}`, { headers: headers(), cache: "no-store" }));
}

export function ask(what, body, signal) {
  return answer(fetch(`${API}/${what}`, {
    method: "POST", headers: headers({ "Content-Type": "application/json" }), body: JSON.stringify(body), signal,
  }));
}

// Call `onState` with the revision and the trouble whenever the server tells them; `onLost` while it cannot be heard.
export async function listen(onState, onLost) {
  for (let failures = 0; ; failures += 1) {
    try {
      const response = await fetch(`${API}/events`, { headers: headers(), cache: "no-store" });
      if (!response.ok) throw new Error(String(response.status));
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let rest = ""; ;) {
        const { value, done } = await reader.read();
        if (done) break;
        const parts = (rest + value).split("\n\n");
        rest = parts.pop();
        for (const part of parts) {
          const data = part.split("\n").find((line) => line.startsWith("data: "));
          if (data) {
            failures = 0;
            onState(JSON.parse(data.slice(6)));
          }
        }
      }
    } catch { /* said below, and tried again */ }
    onLost();
    await new Promise((resolve) => setTimeout(resolve, 1000 * RETRY_SECONDS[Math.min(failures, RETRY_SECONDS.length - 1)]));
  }
}
