/// No node could be asked, or none answered.
package struct ServiceUnreachable: Error, Sendable, CustomStringConvertible {
    /// What happened at each URL that was tried, in order; never empty.
    package var problems: [(url: String, text: String)]
    /// Whether nothing was sent anywhere, because nobody listens.
    package var isRefused: Bool
    /// Whether a request went out at all, to a node that did not answer it.
    package var wasSent = false
    /// Whether a node may have done what was asked. Else a retry is safe.
    package var isOutcomeUnknown: Bool

    /// Takes over how far an earlier attempt of the same request came.
    mutating func note(_ earlier: ServiceUnreachable?) {
        guard let earlier else { return }
        wasSent = wasSent || earlier.wasSent
        isRefused = isRefused && earlier.isRefused
    }

    package var description: String {
        // The same problem everywhere is said once.
        (Set(problems.map(\.text)).count == 1
            ? problems.map(\.url).joined(separator: ", ") + ": \(problems[0].text)"
            : problems.map { "\($0.url): \($0.text)" }.joined(separator: "; "))
            + (isOutcomeUnknown ? ". The outcome is unknown: look before you repeat it" : "")
    }
}
