/// What a request for a container's data shows of its sender; the schemes exclude each other.
package enum CallerCredentials: Sendable {
    /// An API token, and a user's token where a user speaks.
    case tokens(api: String, user: WebAuthToken?)
    /// A server key, which signs.
    case key(ServerKeyFile)
}
