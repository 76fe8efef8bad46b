import RecordModel

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

/// What went wrong before there was a form to show it in.
struct ProblemPage: Sendable {
    var reason: String
    /// By which the log has it.
    var requestID: String

    var page: Page {
        Page(
            title: "Sign in",
            body: """
                <h1>This did not work</h1>
                <p role="alert">\(reason)</p>
                <p class="soft">Request \(requestID)</p>
                """)
    }
}

/// On the way to an identity provider. A redirect in answer to a posted form would need its place in the form's policy,
/// before it is known; so the browser goes on by itself.
struct ContinuePage: Sendable {
    var provider: String
    var url: String

    var page: Page {
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
