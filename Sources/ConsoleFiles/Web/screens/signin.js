/**
 * Sign-in: by the link of `zonekeeper console open`, or by name and password; the first time, the password is
 *   chosen.
 */
import { signal } from "../core/signal.js";
import { html } from "../core/dom.js";
import { RequestError, call } from "../core/api.js";
import { asRequestError } from "../core/resource.js";
import { session, take } from "../core/session.js";
import { openForm } from "../elements/dialog.js";
import { button, errorBox, messages, textField } from "../elements/parts.js";
import { mark } from "../elements/icon.js";

const { code, div, form, h1, main, p } = html;

/** Passwords have at least so many characters; the server decides. */
const passwordHint = "At least 8 characters.";

/** @param {{link: string | null, done: () => void}} options */
export function signInScreen({ link, done }) {
  const step = signal(/** @type {"link" | "password" | "choose"} */ (link ? "link" : session.peek()?.needsPassword ? "choose" : "password"));
  const error = signal(null);
  const isBusy = signal(false);
  const attempt = async (/** @type {() => Promise<any>} */ work) => {
    isBusy.value = true;
    error.value = null;
    try {
      const me = take(await work());
      if (me.needsPassword) step.value = "choose";
      else done();
    } catch (failure) {
      error.value = asRequestError(failure);
      if (step.peek() === "link") step.value = "password";
    } finally {
      isBusy.value = false;
    }
  };
  if (link) void attempt(() => call("POST /admin/1/console/sign-in", { isSignIn: true, body: { link } }));
  const values = { name: session.peek()?.name ?? "", password: "", again: "" };
  const text = (/** @type {keyof typeof values} */ name, label, rest, hint = "") =>
    textField({ label, hint, ...rest, value: values[name], required: true, oninput: (text) => (values[name] = text) });
  const submit = (event) => {
    event.preventDefault();
    const { name, password, again } = values;
    if (step.peek() === "password") return attempt(() => call("POST /admin/1/console/sign-in", { isSignIn: true, body: { name, password } }));
    if (password !== again) return void (error.value = new RequestError(0, { reason: "The two passwords differ.", serverErrorCode: "NOT_SENT" }));
    return attempt(async () => {
      const answer = await call("POST /admin/1/console/password", { isSignIn: true, body: { name: name || undefined, password } });
      return answer?.csrfToken ? answer : call("GET /admin/1/console/me", { isSignIn: true });
    });
  };
  return [main({ class: "sign-in" },
    div({ class: "sign-in-card" }, div({ class: "sign-in-mark" }, mark()),
      () => {
        const now = step.value;
        if (now === "link") return [h1("Signing you in…"), p({ class: "muted" }, "The link is being checked.")];
        return [
          h1(now === "choose" ? "Choose your password" : "Sign in to Zonekeeper"),
          p({ class: "muted" }, now === "choose" ? "You are in. With a name and a password you can come back without a link." : location.host),
          () => (error.value ? errorBox(error.value, { title: now === "choose" ? "The password was not set" : "You are not signed in" }) : null),
          form({ onsubmit: submit, novalidate: true },
            text("name", "Name", { autocomplete: "username", autofocus: true, spellcheck: "false", autocapitalize: "off" }),
            now === "choose"
              ? [text("password", "Password", { type: "password", autocomplete: "new-password" }, passwordHint), text("again", "Password, again", { type: "password", autocomplete: "new-password" })]
              : text("password", "Password", { type: "password", autocomplete: "current-password" }),
            button({ label: now === "choose" ? "Set password" : "Sign in", kind: "primary", type: "submit", class: "whole", busy: () => isBusy.value })),
          now === "password" ? p({ class: "hint center" }, "No account yet? On the server, ", code("zonekeeper console open"), " prints a link that signs you in.") : null,
        ];
      })), messages()];
}

/** @type {Promise<void> | null} */ let asking = null;

/**
 * Asks for the password again, over the page as it is, so that nothing that was entered is lost.
 * @param {boolean} isFresh
 */
export function askToSignIn(isFresh) {
  asking ??= ask(isFresh).finally(() => (asking = null));
  return asking;
}

/** @param {boolean} isFresh */
async function ask(isFresh) {
  const values = { name: session.peek()?.name ?? "", password: "" };
  const done = await openForm({
    title: isFresh ? "Confirm that it is you" : "Your session ended", submitLabel: "Sign in", cancelLabel: "Not now",
    body: () => [
      p(isFresh ? "This needs a sign-in of the last 15 minutes." : "Sign in again to go on. Everything on the page stays as it is."),
      textField({ label: "Name", isWide: true, value: values.name, autocomplete: "username", oninput: (text) => (values.name = text) }),
      textField({ label: "Password", isWide: true, type: "password", autofocus: true, autocomplete: "current-password", oninput: (text) => (values.password = text) }),
    ],
    submit: async () => void take(await call("POST /admin/1/console/sign-in", { isSignIn: true, body: values })),
  });
  if (!done) throw new Error("The sign-in was put off; what you did was not sent.");
}

