/// The look of the sign-in pages: readable in a popup of 640 x 525, on a phone, in the dark, and without any of it.
enum PageStyle {
    static let sheet: HTML = """

        :root { color-scheme: light dark; --ink: #1b1d22; --soft: #5b616e; --line: #c3c8d1; --paper: #fff; --back: #f1f3f6;
          --act: #1259c3; --act-ink: #fff; --bad: #a11b1b; --bad-back: #fdecec; }
        @media (prefers-color-scheme: dark) {
          :root { --ink: #eceef2; --soft: #a5acb9; --line: #4a505c; --paper: #1f2228; --back: #15171b;
            --act: #7ab0ff; --act-ink: #0d1522; --bad: #ffb4b4; --bad-back: #3d1c1e; } }
        * { box-sizing: border-box; }
        body { margin: 0; min-height: 100vh; display: flex; padding: 1rem; background: var(--back); color: var(--ink);
          font: 1rem/1.4 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
        main { width: 100%; max-width: 26rem; margin: auto; padding: 1.25rem 1.5rem; background: var(--paper);
          border: 1px solid var(--line); border-radius: .6rem; }
        h1 { font-size: 1.35rem; line-height: 1.2; margin: 0 0 .15rem; }
        p { margin: .35rem 0; overflow-wrap: anywhere; }
        .soft { color: var(--soft); font-size: .9rem; }
        .bad { margin: .75rem 0 0; padding: .5rem .7rem; border-radius: .4rem; color: var(--bad);
          background: var(--bad-back); }
        form { margin: .75rem 0 0; }
        label { display: block; font-size: .9rem; margin: .55rem 0 .15rem; }
        label.tick { display: flex; gap: .5rem; align-items: center; margin: .7rem 0; }
        label.tick input { width: 1.05rem; height: 1.05rem; margin: 0; }
        input[type=text], input[type=password] { width: 100%; font: inherit; color: inherit; background: var(--back);
          padding: .45rem .6rem; border: 1px solid var(--line); border-radius: .4rem; }
        button { width: 100%; font: inherit; padding: .5rem .7rem; margin: .25rem 0 0; border-radius: .4rem; cursor: pointer;
          border: 1px solid var(--line); color: inherit; background: transparent; }
        button.main { font-weight: 600; color: var(--act-ink); background: var(--act); border-color: var(--act); }
        input:focus-visible, button:focus-visible, a:focus-visible { outline: 3px solid var(--act); outline-offset: 2px; }
        a { color: var(--act); }
        .or { display: flex; align-items: center; gap: .6rem; margin: .7rem 0 .3rem; color: var(--soft); font-size: .85rem; }
        .or::before, .or::after { content: ""; flex: 1; border-top: 1px solid var(--line); }
        .providers { display: grid; grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); gap: 0 .5rem; }
        .foot { display: flex; justify-content: space-between; align-items: center; gap: 1rem; margin: .8rem 0 0;
          font-size: .9rem; }
        .foot form { margin: 0; }
        .foot button { width: auto; border: 0; padding: .2rem 0; margin: 0; color: var(--act); text-decoration: underline; }

        """
}
