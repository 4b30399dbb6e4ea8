/** Talking to the server we came from, and to no other. */

import { h } from "./dom";
import { dialog } from "./dialog";

/** A refusal, in the server's words. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    detail: string,
    readonly field?: string,
  ) {
    super(detail);
  }
}

const BASE = "/api/v1";

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await (await request(path, signal ? { signal } : {})).json()) as T;
}

export async function post<T>(path: string, body: unknown, signal?: AbortSignal): Promise<T> {
  return (await (await send(path, JSON.stringify(body), "application/json", signal)).json()) as T;
}

export async function send(path: string, body: BodyInit, type?: string, signal?: AbortSignal): Promise<Response> {
  return request(path, {
    method: "POST",
    body,
    ...(type ? { headers: { "Content-Type": type } } : {}),
    ...(signal ? { signal } : {}),
  });
}

async function request(path: string, init: RequestInit): Promise<Response> {
  for (;;) {
    let response: Response;
    try {
      response = await fetch(BASE + path, init);
    } catch (error) {
      if (error instanceof DOMException && error.name === "AbortError") throw error;
      throw new Problem(0, "The server cannot be reached. Is it still running?");
    }
    if (response.status === 401 && path !== "/session") {
      await askForToken();
      continue;
    }
    if (!response.ok) throw await problem(response);
    return response;
  }
}

async function problem(response: Response): Promise<Problem> {
  try {
    const told = (await response.json()) as { detail?: string; field?: string };
    return new Problem(response.status, told.detail ?? response.statusText, told.field);
  } catch {
    return new Problem(response.status, response.statusText || `error ${response.status}`);
  }
}

/** Sign in with the token of the address, if it has one; what follows # was never sent anywhere. */
export async function signIn(): Promise<void> {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (token === null) return;
  history.replaceState(null, "", location.pathname + location.search);
  await offer(token);
}

async function offer(token: string): Promise<boolean> {
  try {
    await send("/session", JSON.stringify({ token }), "application/json");
    return true;
  } catch (error) {
    if (error instanceof Problem && error.status === 401) return false;
    throw error;
  }
}

let asking: Promise<void> | null = null;

function askForToken(): Promise<void> {
  asking ??= new Promise<void>((resolve) => {
    const note = h("p", { class: "error", role: "alert" });
    const field = h("input", { type: "password", id: "token", autocomplete: "current-password", required: true });
    const box = dialog(
      "Sign in",
      h("p", {}, "This server wants a token. The one who started it has it."),
      h("label", { for: "token" }, "Token"),
      field,
      note,
      h("div", { class: "row end" }, h("button", { type: "submit", class: "primary" }, "Sign in")),
    );
    box.addEventListener("cancel", (event) => event.preventDefault());
    box.querySelector("form")?.addEventListener("submit", (event) => {
      event.preventDefault();
      void offer(field.value).then((known) => {
        if (known) {
          box.close();
          asking = null;
          resolve();
        } else note.textContent = "That is not the token.";
      });
    });
    box.showModal();
  });
  return asking;
}
