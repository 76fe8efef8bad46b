import NIOCore
import NIOSSL

/// TLS for both ends of peer connections: version 1.3 only, both sides show certificates, and only the peer authority
/// is trusted.
struct TLSContexts: Sendable {
    /// This node's own.
    let certificate: NIOSSLCertificate
    let client: NIOSSLContext
    let server: NIOSSLContext

    /// Reads the files.
    /// - Throws: `PeerTransportError.badCertificate` naming the file; also if the certificate does not name `node`.
    init(_ tls: PeerTLS, node: NodeID) throws(PeerTransportError) {
        let authorities = try Self.certificates(tls.authorityPath)
        let chain = try Self.certificates(tls.certificatePath)
        certificate = chain[0]
        let names = PeerCertificate.nodes(of: certificate)
        guard names.contains(node) else {
            let found = names.isEmpty ? "no node" : "node " + names.map(\.description).joined(separator: " and ")
            throw .badCertificate(path: tls.certificatePath, problem: "it names \(found), and this is node \(node)")
        }
        let key: NIOSSLPrivateKey
        do { key = try NIOSSLPrivateKey(file: tls.keyPath, format: .pem) } catch {
            throw .badCertificate(path: tls.keyPath, problem: "cannot be read as a key in PEM form (\(error))")
        }
        let chainSources = chain.map { NIOSSLCertificateSource.certificate($0) }
        var server = TLSConfiguration.makeServerConfiguration(
            certificateChain: chainSources, privateKey: .privateKey(key))
        var client = TLSConfiguration.makeClientConfiguration()
        client.certificateChain = chainSources
        client.privateKey = .privateKey(key)
        Self.harden(&server, authorities)
        Self.harden(&client, authorities)
        do {
            self.client = try NIOSSLContext(configuration: client)
            self.server = try NIOSSLContext(configuration: server)
        } catch {
            throw .badCertificate(path: tls.keyPath, problem: "does not go with \(tls.certificatePath) (\(error))")
        }
    }

    private static func harden(_ configuration: inout TLSConfiguration, _ authorities: [NIOSSLCertificate]) {
        configuration.minimumTLSVersion = .tlsv13
        configuration.maximumTLSVersion = .tlsv13
        configuration.trustRoots = .certificates(authorities)
        // The chain is verified in full, and on the server's side a certificate is required. The name is not the
        // host's but the node's, which `Greeting` compares with the hello.
        configuration.certificateVerification = .noHostnameVerification
        configuration.shutdownTimeout = .milliseconds(500)
    }

    private static func certificates(_ path: String) throws(PeerTransportError) -> [NIOSSLCertificate] {
        let list: [NIOSSLCertificate]
        do { list = try NIOSSLCertificate.fromPEMFile(path) } catch {
            throw .badCertificate(path: path, problem: "cannot be read as a certificate in PEM form (\(error))")
        }
        guard !list.isEmpty else { throw .badCertificate(path: path, problem: "holds no certificate") }
        return list
    }
}
