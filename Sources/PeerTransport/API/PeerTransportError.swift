/// Why the transport could not do what it was asked.
package enum PeerTransportError: Error, Hashable, Sendable, CustomStringConvertible {
    /// There is no connection to the node. Nothing was sent: a retry is safe, and helps once the peer is back.
    case notConnected
    /// Too much waits for the connection already. Nothing was sent: a retry is safe, later.
    case outboundFull
    /// The request is longer than a frame may be. Nothing was sent, and a retry does not help.
    case tooLarge(bytes: Int, bytesMax: Int)
    /// The peer answered that it did not do what was asked.
    case refused(String)
    /// No response came in time. Whether the peer did what was asked is unknown.
    case timedOut
    /// The connection broke before the response came. Whether the peer did what was asked is unknown.
    case disconnected
    /// The peer could not send its response, for this reason. Whether it did what was asked is unknown.
    case responseLost(String)
    /// The peer's response is longer than a frame may be. It did what was asked, and a retry does not help.
    case responseTooLarge(bytes: Int, bytesMax: Int)
    /// The port cannot be listened on.
    case cannotListen(host: String, port: Int, problem: String)
    /// A certificate file cannot be used.
    case badCertificate(path: String, problem: String)

    /// Whether the peer may have done what was asked; otherwise it certainly did not.
    package var isOutcomeUnknown: Bool {
        switch self {
        case .timedOut, .disconnected, .responseLost, .responseTooLarge: true
        default: false
        }
    }

    package var description: String {
        switch self {
        case .notConnected: "not connected to the node; nothing was sent"
        case .outboundFull: "too many bytes wait for the node already; nothing was sent"
        case .tooLarge(let bytes, let bytesMax):
            "a request of \(bytes) bytes does not fit the frame limit of \(bytesMax); nothing was sent"
        case .refused(let reason): "the node refused: \(reason)"
        case .timedOut: "the node did not answer in time; the outcome is unknown"
        case .disconnected: "the connection broke before the answer came; the outcome is unknown"
        case .responseLost(let reason): "the node could not send its answer (\(reason)); the outcome is unknown"
        case .responseTooLarge(let bytes, let bytesMax):
            "the node's answer of \(bytes) bytes does not fit the frame limit of \(bytesMax)"
        case .cannotListen(let host, let port, let problem):
            "cannot listen for peers on \(host) port \(port): \(problem)"
        case .badCertificate(let path, let problem):
            "peer certificates: \(path): \(problem). Check the path, or issue the node's certificates anew."
        }
    }
}
