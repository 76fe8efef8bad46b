import Hummingbird
import HummingbirdTLS
package import Logging
import NIOCore
import NIOSSL
import ServiceLifecycle

/// Where clients are served, and with what certificate.
package struct WebServerSettings: Sendable {
    package var host: String
    package var port: Int
    package var certificatePath: String
    package var keyPath: String

    package init(host: String, port: Int, certificatePath: String, keyPath: String) {
        self.host = host
        self.port = port
        self.certificatePath = certificatePath
        self.keyPath = keyPath
    }
}

/// The HTTPS edge of a node.
package struct WebServer: Service {
    private let serve: @Sendable () async throws -> Void

    /// - Parameter onListening: called once the port takes connections.
    /// - Throws: when the certificate or its key cannot be read.
    package init(
        _ settings: WebServerSettings, context: WebContext, logger: Logger,
        onListening: @escaping @Sendable () async -> Void
    ) throws {
        var tls = TLSConfiguration.makeServerConfiguration(
            certificateChain: try NIOSSLCertificate.fromPEMFile(settings.certificatePath).map { .certificate($0) },
            privateKey: .privateKey(try NIOSSLPrivateKey(file: settings.keyPath, format: .pem)))
        tls.minimumTLSVersion = .tlsv12
        let application = Application(
            responder: WebResponder(context: context),
            server: try .tls(.http1(configuration: .init(idleTimeout: .seconds(75))), tlsConfiguration: tls),
            configuration: ApplicationConfiguration(
                address: .hostname(settings.host, port: settings.port), serverName: "zonekeeper"),
            onServerRunning: { _ in await onListening() },
            logger: logger)
        serve = { try await application.run() }
    }

    package func run() async throws { try await serve() }
}
