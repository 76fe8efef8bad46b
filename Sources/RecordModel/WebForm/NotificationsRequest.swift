/// The body of push/changes and push/watch.
package struct NotificationsRequest: WebRequest, Hashable {
    /// Without a body everything is as by default.
    package static var isBodyOptional: Bool { true }

    /// How long a long poll waits at most, in seconds.
    private static let secondsMax = 30

    /// Where to go on; nil begins with the first notification that is kept, or at the end.
    package var syncToken: String?
    /// Whether what has no token begins with what comes next.
    package var beginsAtEnd = false
    /// The device that reads: it is not told of its own changes.
    package var clientID: String?
    /// Notifications of a page.
    package var limit = Limits.recordsPerPageMax
    /// How long a long poll waits.
    package var seconds = UInt64(secondsMax)

    package init() {}

    /// Reads the body.
    package init(json: JSONValue) throws(ServiceError) {
        self.init()
        try service { () throws(FormError) in
            let form = try Form(json)
            syncToken = try form.token("syncToken")
            beginsAtEnd = try form.bool("fromEnd") ?? false
            limit = try form.resultsLimit() ?? limit
            if let name = try form.token("clientId") {
                try at("clientId") { () throws(FormError) in try Names.checkPrintable(name) }
                clientID = name
            }
            if let given = try form.integer("timeout") {
                guard given >= 0 else { throw FormError("expected seconds, at most \(Self.secondsMax)", at: "timeout") }
                seconds = UInt64(min(given, Self.secondsMax))
            }
        }
    }
}
