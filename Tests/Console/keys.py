"""A person without a mouse: reaches controls by Tab and arrows, and never by a script."""

import re

from playwright.sync_api import expect

# Where the focus is, seen from the target: on it, in its row, in its table's rows, or elsewhere.
NEAR = """(target) => {
    const now = document.activeElement;
    if (now === target) return "here";
    const row = target.closest("tbody tr");
    return row?.contains(now) ? "row" : row?.parentElement.contains(now) ? "table" : "elsewhere";
}"""


class Keys:
    def __init__(self, page):
        self.page, self.keyboard = page, page.keyboard
        # Whoever listens early does not miss the chooser that a key opens.
        page.on("filechooser", lambda _: None)

    def press(self, *names):
        for name in names:
            self.keyboard.press(name)

    def type(self, text):
        self.keyboard.type(text)

    def paste(self, text):
        self.keyboard.insert_text(text)

    def to(self, target, key="Tab"):
        """Goes on until the target has the focus."""
        expect(target).to_be_visible()
        for _ in range(120):
            if target.evaluate("(element) => element === document.activeElement"):
                return
            self.press(key)
        raise AssertionError(f"{target} is not reached by {key}")

    def enter(self, target, key="Tab"):
        self.to(target, key)
        self.press("Enter")

    def cell(self, target):
        """To a control in a table: by Tab into the table, then by arrows."""
        expect(target).to_be_visible()
        for _ in range(300):
            where = target.evaluate(NEAR)
            if where == "here":
                return
            if where == "elsewhere":
                self.press("Tab")
            elif where == "row":
                self.press("ArrowRight")
            else:
                # The first arrow leads from the last row to itself, so all rows are met from the top.
                before = self.page.evaluate("document.activeElement.closest('tr').rowIndex")
                self.press("ArrowDown")
                if self.page.evaluate("document.activeElement.closest('tr').rowIndex") == before:
                    self.press("Home")
        raise AssertionError(f"{target} is not reached by arrows")

    def row(self, target):
        """Presses a control in a table."""
        self.cell(target)
        self.press("Enter")

    def go(self, screen, heading=None):
        """To another screen, by its name."""
        self.press("Control+k")
        expect(self.page.get_by_role("combobox", name="Go to")).to_be_focused()
        self.type(screen)
        self.press("Enter")
        expect(self.page.get_by_role("heading", name=heading or screen, level=1)).to_be_focused()

    def fill(self, target, text):
        self.to(target)
        self.press("Control+a")
        self.type(text)

    def choose(self, select, label):
        """An option of a select."""
        self.to(select)
        expect(select.locator("option", has_text=re.compile(f"^{re.escape(label)}$"))).to_have_count(1)
        self.press("Home")
        for _ in range(60):
            if select.evaluate("(element) => element.selectedOptions[0]?.label") == label:
                return
            self.press("ArrowDown")
        raise AssertionError(f"{label} is not among the options of {select}")

    def tick(self, box, is_on=True):
        self.to(box)
        self.press("Space")
        expect(box).to_be_checked(checked=is_on)

    def file(self, field, files):
        self.to(field)
        with self.page.expect_file_chooser() as chooser:
            self.press("Space")
        chooser.value.set_files(files)

    def pick(self, name):
        """A command of the menu that is open."""
        item = self.page.get_by_role("menuitem", name=name)
        self.to(item, "ArrowDown")
        self.press("Enter")

    def menu(self, opener, name):
        if opener.evaluate("(element) => element.closest('tbody') !== null"):
            self.cell(opener)
        else:
            self.to(opener)
        self.press("Enter")
        self.pick(name)


class Mouse:
    """The same with a mouse, for what both hands do in one test."""

    def __init__(self, page):
        self.page = page

    def go(self, screen, heading=None):
        self.page.get_by_role("navigation", name="Screens").get_by_role("link", name=re.compile(f"^{screen}…?$")).click()
        expect(self.page.get_by_role("heading", name=heading or screen, level=1)).to_be_visible()

    def enter(self, target):
        target.click()

    def row(self, target):
        target.click()

    def fill(self, target, text):
        target.fill(text)

    def menu(self, opener, name):
        opener.click()
        self.page.get_by_role("menuitem", name=name).click()

    def choose(self, select, label):
        select.select_option(label=label)

    def tick(self, box):
        box.check()

    def file(self, field, files):
        field.set_input_files(files)


def tab_to(page, target, key="Tab"):
    Keys(page).to(target, key)
