// Requests to the console's server, and nothing else: addresses are relative to the page.

const ROOT = new URL("api/", document.baseURI);
let session = null;

/** What the server refused or could not do; `status` is HTTP's, 0 where the server did not answer. */
export class ApiError extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** Ask who we are, what may be done here, and for the token of writes. */
export async function openSession() {
  session = await get(["session"]);
  return session;
}

/** The address of a resource; each part may hold any character. */
export function address(parts, query = {}) {
  const url = new URL(parts.map(encodeURIComponent).join("/"), ROOT);
  for (const [name, value] of Object.entries(query)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== "" && one !== null && one !== undefined) url.searchParams.append(name, one);
    }
  }
  return url.href;
}

export async function get(parts, query = {}, signal = undefined) {
  return await answer(await ask(address(parts, query), { signal }));
}

/** A write: POST, PUT, PATCH or DELETE. After a restart of the server the token is asked for anew, once. */
export async function write(method, parts, body, query = {}) {
  const attempt = async () =>
    await ask(address(parts, query), {
      method,
      headers: { "Content-Type": "application/json", "X-Tidelog-CSRF": session?.csrf ?? "" },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  let response = await attempt();
  if (response.status === 403) {
    const token = session?.csrf;
    if ((await openSession()).csrf !== token) response = await attempt();
  }
  return await answer(response);
}

async function ask(url, options) {
  try {
    return await fetch(url, { credentials: "same-origin", ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, 0, "The console's server does not answer. Is `tidelog console` running?");
  }
}

async function answer(response) {
  const body = await response.text();
  let parsed = null;
  try {
    parsed = body ? JSON.parse(body) : null;
  } catch {
    parsed = null;
  }
  if (response.ok) return parsed;
  throw new ApiError(response.status, parsed?.error_code ?? 0, parsed?.message ?? `HTTP ${response.status}: ${response.statusText}`);
}
