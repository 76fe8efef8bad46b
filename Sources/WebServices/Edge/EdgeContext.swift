package import Hummingbird
import NIOCore

/// What is known of a request beside the request: the logger, and where it came from.
package struct EdgeContext: RequestContext {
    package var coreContext: CoreRequestContextStorage
    /// The address at the other end of the connection, without port; IPv4 in its own form also where the socket is an
    /// IPv6 one. Headers that proxies set are not believed: anyone can send them.
    package var remoteAddress: String?
    /// Tells where the client goes away.
    var clientDisconnect: ClientDisconnect?

    /// For a request that comes over no connection.
    package init(core: CoreRequestContextStorage) { coreContext = core }

    package init(source: ApplicationRequestContextSource) {
        coreContext = CoreRequestContextStorage(source: source)
        clientDisconnect = ClientDisconnect(of: source.channel)
        remoteAddress = Self.text(of: source.channel.remoteAddress)
    }

    static func text(of address: SocketAddress?) -> String? {
        guard let text = address?.ipAddress else { return nil }
        let mapped = "::ffff:"
        return text.hasPrefix(mapped) && text.contains(".") ? String(text.dropFirst(mapped.count)) : text
    }
}
