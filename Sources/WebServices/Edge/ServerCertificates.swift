import Logging
import NIOCore
import NIOSSL
import PeerTransport
import Synchronization

/// The TLS context of the client port, made of the certificate and its key, and made again when the files change.
final class ServerCertificates: Sendable {
    /// TLS 1.2 suites: forward secrecy and AEAD. Those of TLS 1.3 are all of that kind.
    static let cipherSuites = "ECDHE+AESGCM:ECDHE+CHACHA20"

    private struct Unusable: Error, CustomStringConvertible { var description: String }

    private let certificatePath: String
    private let keyPath: String
    private let logger: Logger
    private let counters: EdgeCounters
    private let backed: Mutex<FileBacked<NIOSSLContext>>

    /// Reads the files.
    /// - Throws: what NIOSSL says of a certificate or key that cannot be used.
    init(_ settings: WebServerSettings, counters: EdgeCounters, logger: Logger) throws {
        let (certificatePath, keyPath) = (settings.certificatePath, settings.keyPath)
        self.certificatePath = certificatePath
        self.keyPath = keyPath
        self.counters = counters
        self.logger = logger
        let first = try FileBacked(
            paths: [certificatePath, keyPath], interval: settings.certificateCheckInterval, now: .now()
        ) { try Self.read(certificatePath, keyPath, isChecked: false) }
        backed = Mutex(first)
    }

    /// What the next connection does TLS with. Looks at the files, at most once a second; reading them takes about a
    /// millisecond, and happens only when they have changed.
    func context(now: NIODeadline) -> NIOSSLContext {
        let (context, outcome) = backed.withLock { backed in
            let outcome = backed.refresh(now: now) {
                try Self.read(certificatePath, keyPath, isChecked: true)
            }
            return (backed.value, outcome)
        }
        switch outcome {
        case .unchanged: break
        case .renewed:
            counters.countReload()
            logger.info("the client certificate has changed; new connections use it")
        case .unusable(let problem):
            logger.warning(
                "the client certificate \(certificatePath) or its key has changed and cannot be used; the old one stays: \(problem)"
            )
        }
        return context
    }

    private static func read(_ certificatePath: String, _ keyPath: String, isChecked: Bool) throws -> NIOSSLContext {
        let chain = try NIOSSLCertificate.fromPEMFile(certificatePath)
        guard let leaf = chain.first else {
            throw Unusable(description: "\(certificatePath) holds no certificate in PEM form")
        }
        if isChecked, let problem = CertificateValidity.problem(of: leaf) { throw Unusable(description: problem) }
        // TLS 1.2 or later with AEAD suites only. BoringSSL has no compression, and renegotiation stays off.
        var configuration = TLSConfiguration.makeServerConfiguration(
            certificateChain: chain.map { .certificate($0) },
            privateKey: .privateKey(try NIOSSLPrivateKey(file: keyPath, format: .pem)))
        configuration.minimumTLSVersion = .tlsv12
        configuration.cipherSuites = cipherSuites
        configuration.renegotiationSupport = .none
        configuration.applicationProtocols = ["h2", "http/1.1"]
        configuration.shutdownTimeout = .seconds(1)
        return try NIOSSLContext(configuration: configuration)
    }
}
