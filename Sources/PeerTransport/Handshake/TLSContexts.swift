package import NIOCore
package import NIOSSL

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

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// The TLS contexts of peer connections, made of the certificate files and made again when those change.
///
/// `certs renew`, or whatever else replaces the files, is thereby enough for a running node: the next connection in
/// either direction is made with what the files say. The authority's file may hold several authorities, which is how
/// one is replaced by another without a moment in which nodes do not trust each other.
struct PeerCertificates: Sendable {
    private let files: PeerTLS
    private let node: NodeID
    private var backed: FileBacked<TLSContexts>

    /// Reads the files.
    /// - Throws: `PeerTransportError.badCertificate` naming the file.
    init(_ configuration: PeerTransportConfiguration) throws(PeerTransportError) {
        let (files, node) = (configuration.tls, configuration.nodeID)
        self.files = files
        self.node = node
        backed = try FileBacked(
            paths: [files.authorityPath, files.certificatePath, files.keyPath],
            interval: configuration.certificateCheckInterval, now: .now()
        ) { () throws(PeerTransportError) in try TLSContexts(files, node: node) }
    }

    var contexts: TLSContexts { backed.value }

    /// Reads the files again if they have changed. What has expired already is of no use.
    mutating func refresh(now: NIODeadline) -> FileBacked<TLSContexts>.Outcome {
        backed.refresh(now: now) { [files, node] in
            let contexts = try TLSContexts(files, node: node)
            if let problem = CertificateValidity.problem(of: contexts.certificate) {
                throw PeerTransportError.badCertificate(path: files.certificatePath, problem: problem)
            }
            return contexts
        }
    }
}

/// What a peer's certificate says about who it is.
enum PeerCertificate {
    /// What stands before the node id in the SAN URI.
    static let nodePrefix = "zonekeeper://node/"

    /// The nodes that a certificate names, in its order. Text that is not exactly a number after the prefix is no node.
    static func nodes(of certificate: NIOSSLCertificate) -> [NodeID] {
        var nodes: [NodeID] = []
        for name in certificate._subjectAlternativeNames() where name.nameType == .uri {
            guard let node = node(inURI: String(decoding: name.contents, as: UTF8.self)) else { continue }
            nodes.append(node)
        }
        return nodes
    }

    static func node(inURI uri: String) -> NodeID? {
        guard uri.hasPrefix(nodePrefix) else { return nil }
        let digits = uri.dropFirst(nodePrefix.count)
        // UInt64(_:) also takes a sign and leading zeros, and one node must have one name only.
        guard let id = UInt64(digits), String(id) == digits else { return nil }
        return NodeID(id)
    }
}

/// A file of certificates that a node depends on.
package struct CertificateFile: Hashable, Sendable {
    /// As metrics name it, such as `peer`.
    package var name: String
    /// In PEM form.
    package var path: String

    /// A file, whether or not it is there.
    package init(_ name: String, path: String) {
        self.name = name
        self.path = path
    }

    /// When the first of its certificates expires, in seconds since 1970; nil where the file cannot be read.
    package var expires: Int64? {
        (try? NIOSSLCertificate.fromPEMFile(path))?.map { Int64($0.notValidAfter) }.min()
    }
}

/// Whether a certificate is of use at the moment.
package enum CertificateValidity {
    /// What is wrong with the time for which a certificate was issued; nil if it holds now.
    package static func problem(of certificate: NIOSSLCertificate) -> String? {
        problem(from: certificate.notValidBefore, to: certificate.notValidAfter, now: time(nil))
    }

    /// - Parameters: seconds since 1970.
    static func problem(from: time_t, to end: time_t, now: time_t) -> String? {
        if end < now { return "it expired \((now - end) / 60) minutes ago" }
        if from > now { return "it is not valid for another \((from - now) / 60 + 1) minutes" }
        return nil
    }
}

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Which versions of some files there are: of each the inode, size and time of change. Files that are not there count
/// as a version, too.
struct FileStamps: Hashable, Sendable {
    private struct Stamp: Hashable {
        var inode: UInt64
        var size: Int64
        var seconds: Int
        var nanoseconds: Int
    }

    private var stamps: [Stamp?]

    /// Looks at the files; follows symbolic links.
    init(paths: [String]) {
        stamps = paths.map { path in
            var status = stat()
            guard stat(path, &status) == 0 else { return nil }
            #if canImport(Darwin)
                let time = status.st_mtimespec
            #else
                let time = status.st_mtim
            #endif
            return Stamp(
                inode: UInt64(status.st_ino), size: Int64(status.st_size), seconds: time.tv_sec,
                nanoseconds: time.tv_nsec)
        }
    }
}

/// A value made of files, and made again when they change, without restart: the certificates of a listener.
///
/// The files are looked at by `refresh` only, and at most once a second, so that who holds the value decides when a few
/// system calls are welcome. What cannot be used changes nothing: the old value stays until the files change again.
package struct FileBacked<Value: Sendable>: Sendable {
    /// What the files said when they were last of use.
    package private(set) var value: Value
    private let paths: [String]
    private let interval: TimeAmount
    private var stamps: FileStamps
    private var nextLook: NIODeadline

    /// What a look at the files brought.
    package enum Outcome: Sendable {
        /// They are as they were, or it is too early to look again.
        case unchanged
        /// The value is a new one.
        case renewed
        /// The files changed, and are of no use for this reason; told once for each change.
        case unusable(String)
    }

    /// Makes the value.
    /// - Parameter interval: how long after a look the files are not looked at again.
    /// - Throws: what `make` throws.
    package init<Failure: Error>(
        paths: [String], interval: TimeAmount = .seconds(1), now: NIODeadline, make: () throws(Failure) -> Value
    ) throws(Failure) {
        self.paths = paths
        self.interval = interval
        // Before they are read: a change in between is found by the next look.
        stamps = FileStamps(paths: paths)
        nextLook = now + interval
        value = try make()
    }

    /// Looks whether the files have changed, and makes the value again if so. Blocks while reading.
    package mutating func refresh(now: NIODeadline, make: () throws -> Value) -> Outcome {
        guard now >= nextLook else { return .unchanged }
        nextLook = now + interval
        let found = FileStamps(paths: paths)
        guard found != stamps else { return .unchanged }
        stamps = found
        do {
            value = try make()
            return .renewed
        } catch {
            return .unusable(String(describing: error))
        }
    }
}
