import NIOCore

/// Socket options of peer connections.
enum PeerSocket {
    /// How long sent bytes may stay unacknowledged before the kernel drops the connection, in milliseconds.
    static let userTimeoutMilliseconds: SocketOptionValue = 5_000

    /// Small frames go out at once, and a peer whose machine vanished while bytes were in flight is noticed in
    /// seconds instead of the kernel's quarter of an hour.
    static func apply(to channel: any Channel) throws {
        guard let options = channel.syncOptions else { return }
        try options.setOption(.tcpOption(.tcp_nodelay), value: 1)
        #if os(Linux)
            // TCP_USER_TIMEOUT, which NIO has no name for.
            try options.setOption(.tcpOption(NIOBSDSocket.Option(rawValue: 18)), value: userTimeoutMilliseconds)
        #endif
    }
}
