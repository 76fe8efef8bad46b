import RecordModel

/// The form for a name and a password, with a button for each identity provider; the one for a new account, which is
/// much the same; and the one that only leads to an identity provider.
struct SignInPage: Sendable {
    enum Kind: Hashable, Sendable { case signIn, signUp, provider(String) }

    var kind: Kind
    /// The ticket as it came, for the form to carry on.
    var ticket: String
    var cookie: BrowserCookie
    /// Whom the user signs in for.
    var container: String
    var isDevelopment: Bool
    /// The origin of the page that gets the session, which the user is asked about; nil where that is no page.
    var asker: String?
    /// Names of identity providers; only for signing in.
    var providers: [String] = []
    var isSignUpOpen = false
    /// What was wrong with the last attempt.
    var problem: String?
    /// The name of the request that had the problem, by which the log has it.
    var requestID: String?
    /// What the last attempt had in the name's field, so that nobody types it twice.
    var name = ""
    var keepsSignedIn = false
    /// Where the form may be redirected to: the place of the API token's callback URL.
    var callbackOrigin: String?

    var page: Page {
        var page = Page(title: kind == .signUp ? "Create an account" : "Sign in", body: body)
        page.formTargets = callbackOrigin.map { [$0] } ?? []
        return page
    }

    private var body: HTML {
        let environment: HTML? = isDevelopment ? " <span>(development)</span>" : nil
        let heading: HTML = kind == .signUp ? "Create an account" : "Sign in"
        let asker: HTML? = asker.map { " on <strong>\($0)</strong>" }
        let alert: HTML? = problem.map { "<p class=\"bad\" role=\"alert\" id=\"problem\">\($0)</p>" }
        let request: HTML? = requestID.map { "<p class=\"soft\">Request \($0)</p>" }
        return """
            <h1>\(heading)</h1>
            <p class="soft">for <strong>\(container)</strong>\(environment)\(asker)</p>
            \(alert)
            <form method="post" action="\(kind == .signUp ? "/sign-up" : "/sign-in")" id="main">
            \(hidden)
            \(fields)
            <label class="tick"><input type="checkbox" name="keepSignedIn" value="true"\(tick)> Keep me signed in</label>
            \(buttons)
            </form>
            \(foot)
            \(request)
            """
    }

    private var buttons: HTML {
        switch kind {
        case .signIn, .signUp:
            """
            <button class="main" type="submit">\(kind == .signIn ? "Sign in" : "Create account")</button>
            \(providerButtons)
            """
        case .provider(let name):
            """
            <button class="main" type="submit" name="provider" value="\(name)">Go on to \(name)</button>
            """
        }
    }

    private var hidden: HTML {
        """
        <input type="hidden" name="ticket" value="\(ticket)">
        <input type="hidden" name="check" value="\(cookie.value)">
        """
    }

    private var tick: HTML { keepsSignedIn ? " checked" : "" }

    private var fields: HTML? {
        let described: HTML = problem == nil ? "" : " aria-describedby=\"problem\""
        let nameFocus: HTML = name.isEmpty ? " autofocus" : ""
        let passwordFocus: HTML = name.isEmpty ? "" : " autofocus"
        let nameField: HTML = """
            <label for="name">Name</label>
            <input type="text" id="name" name="name" value="\(name)" autocomplete="username" autocapitalize="none" \
            spellcheck="false" maxlength="255" required\(described)\(nameFocus)>
            """
        switch kind {
        case .provider: return nil
        case .signIn:
            return """
                \(nameField)
                <label for="password">Password</label>
                <input type="password" id="password" name="password" autocomplete="current-password" maxlength="1024" \
                required\(passwordFocus)>
                """
        case .signUp:
            return """
                \(nameField)
                <label for="password">Password, 8 characters or more</label>
                <input type="password" id="password" name="password" autocomplete="new-password" minlength="8" \
                maxlength="1024" required\(passwordFocus)>
                <label for="repeated">The password again</label>
                <input type="password" id="repeated" name="repeated" autocomplete="new-password" minlength="8" \
                maxlength="1024" required>
                """
        }
    }

    /// In the same form, so that they know of the tick. The password's field may be empty then, or is not looked at.
    private var providerButtons: HTML? {
        guard !providers.isEmpty else { return nil }
        let buttons = providers.map { name -> HTML in
            """
            <button type="submit" name="provider" value="\(name)" formnovalidate aria-label="Sign in with \(name)">\(name)</button>

            """
        }
        return """
            <div class="or">or sign in with</div>
            <div class="providers">\(HTML(buttons))</div>
            """
    }

    private var foot: HTML {
        let other: HTML =
            switch kind {
            case .signIn where isSignUpOpen:
                "<a href=\"/sign-up?ticket=\(ticket)\">Create an account</a>"
            case .signIn, .provider: "<span></span>"
            case .signUp: "<a href=\"/sign-in?ticket=\(ticket)\">Sign in instead</a>"
            }
        return """
            <div class="foot">\(other)
            <form method="post" action="/sign-in">\(hidden)
            <button type="submit" name="cancel" value="true">Cancel</button></form></div>
            """
    }
}

/// The end of a sign-in in a popup: tells the page that opened it how it went, and closes.
struct ClosingPage: Sendable {
    enum Outcome: Sendable {
        case signedIn(webAuthToken: String, name: String)
        case failed(reason: String)
    }

    var outcome: Outcome
    /// Origins that may learn of it.
    var audience: [String]

    var page: Page {
        var page: Page
        switch outcome {
        case .signedIn(_, let name):
            page = Page(
                title: "Signed in",
                body: """
                    <h1>You are signed in</h1>
                    <p>as <strong>\(name)</strong>.</p>
                    <p id="hint">You may close this window.</p>
                    <noscript><p class="bad">The app learns of it through JavaScript, which is switched off here. Switch it on \
                    and sign in again.</p></noscript>
                    """)
        case .failed(let reason):
            page = Page(
                title: "Not signed in",
                body: """
                    <h1>You are not signed in</h1>
                    <p>\(reason)</p>
                    <p id="hint">You may close this window.</p>
                    """)
        }
        page.script = script
        return page
    }

    /// Posting to an origin that is not the opener's does nothing, so the token reaches its audience only. Clients read
    /// one or the other name of the token.
    private var script: String {
        let message = Page.literal { writer in
            writer.object { writer in
                switch outcome {
                case .signedIn(let token, _):
                    writer.member("ckWebAuthToken", token)
                    writer.member("ckSession", token)
                case .failed(let reason): writer.member("errorMessage", reason)
                }
            }
        }
        let targets = Page.literal { writer in
            writer.array { writer in for origin in audience { writer.string(origin) } }
        }
        return """

            (function () {
              var message = \(message);
              var targets = \(targets);
              if (targets.length === 0) {
                document.getElementById("hint").textContent =
                  "No web page asked for this sign-in, so none is told of it: begin it in the app.";
              } else if (window.opener) {
                targets.forEach(function (target) { window.opener.postMessage(message, target); });
                window.close();
              } else {
                document.getElementById("hint").textContent =
                  "The page that opened this window is gone, so it could not be told: go back to the app and try again.";
              }
            })();

            """
    }
}

extension Page {
    /// What went wrong before there was a form to show it in.
    /// - Parameter requestID: by which the log has it.
    static func problem(_ reason: String, requestID: String) -> Page {
        Page(
            title: "Sign in",
            body: """
                <h1>This did not work</h1>
                <p role="alert">\(reason)</p>
                <p class="soft">Request \(requestID)</p>
                """)
    }

    /// On the way to an identity provider. A redirect in answer to a posted form would need its place in the form's
    /// policy, before it is known; so the browser goes on by itself.
    static func goingOn(to provider: String, at url: String) -> Page {
        var page = Page(
            title: "Sign in with \(provider)",
            body: """
                <h1>Going on to \(provider)</h1>
                <p><a href="\(url)">Continue</a> if nothing happens.</p>
                """)
        page.next = url
        return page
    }
}
