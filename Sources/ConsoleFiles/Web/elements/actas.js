/** Acting as a user: how it begins, and the banner that says so as long as it lasts. */
import { signal } from "../core/signal.js";
import { html } from "../core/dom.js";
import { call } from "../core/api.js";
import { acting, beginActing, minutesLeft, stopActing } from "../core/acting.js";
import { draftsOfActing } from "../core/recorddrafts.js";
import { asRequestError, resource } from "../core/resource.js";
import { navigate, place } from "../core/router.js";
import { denial } from "../core/session.js";
import { plural } from "../core/format.js";
import { button, checkbox, empty, textField, toast, uniqueID } from "./parts.js";
import { confirm, openForm } from "./dialog.js";
import { icon } from "./icon.js";

const { datalist, div, option, p, span, strong } = html;

export const actAsDenial = () => (place.value.container ? denial("POST /admin/1/act-as") : "Open a container first.");

/** Asks for the user and the reason. @param {string} [user] */
export function openActAs(user = "") {
  const [name, reason, write] = [signal(user), signal(""), signal(false)];
  const listID = uniqueID();
  const { container, environment } = place.peek();
  return openForm({
    title: "Act as a user", submitLabel: "Act as this user",
    denied: () => actAsDenial() ?? (name.value.trim() ? (reason.value.trim() ? null : "Say why first.") : "Name a user first."),
    body: () => {
      const people = resource((abort) => (denial("GET /admin/1/users", { everywhere: true }) ? null : call("GET /admin/1/users", { query: { after: name.value.slice(0, -1), limit: 20 }, signal: abort }).then((answer) => answer.users)));
      return [
        p({ class: "muted" }, `You see what this user sees in ${container} (${environment}), for 15 minutes at most. Encrypted values stay hidden. The audit log has both names and your reason.`),
        textField({ label: "User", isWide: true, list: listID, value: name.peek(), autofocus: !user, oninput: (text) => (name.value = text) }),
        datalist({ id: listID }, () => (people.data.value ?? []).map((each) => option({ value: each.name }))),
        textField({ label: "Reason", hint: "Such as the number of a support request.", isWide: true, autofocus: Boolean(user), maxlength: "500", oninput: (text) => (reason.value = text) }),
        checkbox({ label: "Change things, too; otherwise you only read", checked: false, onchange: (isOn) => (write.value = isOn) }),
      ];
    },
    submit: async () => {
      await beginActing({ user: name.peek().trim(), reason: reason.peek().trim(), write: write.peek() });
      toast(`You act as ${name.peek().trim()}`);
    },
  });
}

/** Stops, and leaves what only the user may see: nothing of it stays in the browser. */
export async function stopActingHere() {
  const { id = "", user = "" } = acting.peek() ?? {};
  const edited = draftsOfActing(id);
  if (edited && !(await confirm({ title: "Stop without saving?", action: "Discard changes", text: `${plural(edited, "record")} of ${user} changed.` }))) return;
  try {
    await stopActing();
    toast("You are yourself again");
    const { screen, params } = place.peek();
    if (params.db === "private" || screen === "preferences") await navigate({ screen: screen === "preferences" ? "records" : screen, params: {} });
  } catch (error) {
    toast(asRequestError(error).message, "bad");
  }
}

export const actingBanner = () => () => acting.value && div({ class: "acting", role: "region", "aria-label": "Acting as a user" },
  icon("user"),
  p("You act as ", strong(acting.value.user), span({ class: "acting-more" }, " · ", () => `${minutesLeft.value} min`, " · ", acting.value.write ? "read and write" : "read only", span({ class: "acting-reason" }, ` · ${acting.value?.reason}`))),
  button({ label: "Stop", kind: "quiet", onclick: stopActingHere }));

/** What is shown in place of private data. @param {string} what */
export const needsActing = (what) => empty({ icon: "lock", title: `${what} are their user’s alone`,
  text: "An admin may act as a user for some minutes to see what they see.",
  action: button({ label: "Act as User…", icon: "user", kind: "primary", denied: actAsDenial, onclick: () => openActAs() }) });
