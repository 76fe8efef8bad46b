import RecordModel

extension OpenAPIDocument {
    private static let ticket = APIParameter(
        "ticket", .query, .text, "From the `redirectURL` of an answer.", isRequired: true)
    private static let apiToken = APIParameter("ckAPIToken", .query, .text, "The API token.", isRequired: true)
    private static let webAuthToken = APIParameter(
        "ckWebAuthToken", .query, .text, "A token of the session.", isRequired: true)

    private static func operation(
        _ method: APIOperation.Method, _ path: String, _ summary: String, _ parameters: [APIParameter] = []
    ) -> APIOperation {
        var operation = APIOperation(method, path, tag: "Sign-in", summary)
        operation.parameters = parameters
        return operation
    }

    /// A failure that a page shows.
    private static func pageFailures(_ statuses: [Int]) -> [APIAnswer] {
        statuses.map { APIAnswer($0, "A page that says what was wrong.", .text, type: "text/html") }
    }

    private static let page = APIAnswer(200, "A page.", .text, type: "text/html")
    private static let redirect = APIAnswer(303, "On to where `Location` says.", .text, type: "text/plain")

    /// Pages answer forms with pages, and JSON with JSON.
    private static func signing(_ path: String, _ summary: String) -> APIOperation {
        var operation = operation(.post, path, summary)
        operation.description = """
            What the page's form posts, as `application/x-www-form-urlencoded`, is answered by a page or by a redirect to the API \
            token's callback URL. JSON is answered by JSON, for programs that ask their user themselves.
            """
        operation.request = .json(.reference("SignInRequest"))
        operation.answers = [
            redirect, APIAnswer(200, "Signed in.", .reference("SignInResponse"), other: ["text/html"]),
        ]
        operation.answers += APIAnswer.failures([400, 401, 403, 409, 429, 500, 503]).map { $0.or("text/html") }
        operation.answers += APIAnswer.failures([405, 413])
        return operation
    }

    static let signInOperations: [APIOperation] = {
        var show = operation(.get, "/sign-in", "The sign-in page", [ticket])
        show.description = """
            Opened in a popup or a browser. When the user has signed in, it sends the browser to the callback URL of the API token, \
            with the parameter `ckWebAuthToken`; without one it posts an object with `ckWebAuthToken` and `ckSession` to the window \
            that opened it, and `errorMessage` where the user gives up.
            """
        show.answers = [page] + pageFailures([400, 500, 503])
        var signUp = operation(.get, "/sign-up", "The page for a new account, where sign-up is open", [ticket])
        signUp.answers = [page] + pageFailures([400, 403, 500, 503])
        var provider = operation(
            .get, "/sign-in/provider", "On to an identity provider",
            [
                APIParameter("name", .query, .text, "The identity provider.", isRequired: true), ticket,
                APIParameter("keepSignedIn", .query, .texts("true"), "Two weeks instead of half an hour."),
            ])
        provider.answers = [redirect] + pageFailures([400, 404, 429, 500, 503])
        var callback = operation(
            .get, "/sign-in/callback", "Back from an identity provider",
            [
                APIParameter("state", .query, .text, "As the provider was given it.", isRequired: true),
                APIParameter("code", .query, .text, "What the identity token is got for."),
                APIParameter("error", .query, .text, "Why there is no code."),
                APIParameter("iss", .query, .text, "Who answers."),
            ])
        callback.answers = [page, redirect] + pageFailures([400, 401, 403, 404, 429, 500, 503])
        var signOut = operation(.post, "/sign-out", "End a session, on all nodes", [apiToken, webAuthToken])
        signOut.answers =
            [APIAnswer(200, "Signed out, now or before.", .reference("SignedOut"))]
            + APIAnswer.failures([400, 401, 405, 500, 503])
        return [
            show, signing("/sign-in", "Sign in"), signUp, signing("/sign-up", "Make an account and sign in"), provider,
            callback, signOut,
        ]
    }()

    static let signInShapes: [(name: String, description: String, shape: Shape)] = [
        (
            "SignInRequest", "",
            .request([
                .need("apiToken", .text, "Says for which container."), .need("name", .text),
                .need("password", .text, "8 to 1,024 bytes of UTF-8."),
                .may("keepSignedIn", .boolean, "Two weeks instead of half an hour."),
            ])
        ),
        (
            "SignInResponse", "",
            .answer([
                .need("ckWebAuthToken", .text, "Each answer to a request with it has a newer one in a header."),
                .need("userRecordName", .text), .need("expires", .milliseconds, "When the session ends."),
            ])
        ),
        ("SignedOut", "", .answer([.need("signedOut", .exactly(true))])),
    ]
}
