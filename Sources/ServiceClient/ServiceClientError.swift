/// What keeps a program from asking a cluster at all: a configuration, a file or a key that cannot be used.
///
/// Nothing was sent, so a retry helps only after what the message names was mended. No secret stands in it.
package struct ServiceClientError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What was wrong, where, and what to do.
    package var message: String

    /// What it is about.
    package var subject: Subject

    /// What of a configuration cannot be used.
    package enum Subject: Hashable, Sendable {
        /// A setting, or a file or key that one names.
        case configuration
        /// The file of the user's session: nobody is signed in.
        case session
    }

    package init(_ message: String, about subject: Subject = .configuration) {
        self.message = message
        self.subject = subject
    }

    package var description: String { message }
}
