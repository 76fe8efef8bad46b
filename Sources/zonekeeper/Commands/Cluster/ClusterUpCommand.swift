import ArgumentParser
import Foundation
import Storage

/// `zonekeeper cluster up`
struct ClusterUpCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "up",
        abstract: "Start every node of a configuration file, and wait until each is ready.",
        discussion: """
            Certificates, the encryption key and the administrator's token are made where they are missing. \
            Nodes that run already are left alone, so this may be done again at any time.
            """)

    @OptionGroup var options: ConfigOptions

    @Option(help: "How long to wait for the nodes, in seconds.")
    var timeout = 60

    func run() async throws {
        let layout = try options.layout()
        do throws(DiskError) {
            try makeFolder(at: layout.data + "/logs")
        } catch {
            throw CommandFailure("the data folder \(layout.data) cannot be made: \(error.reason)")
        }
        let made = try CertificateMaking.makeMissing(for: layout)
        if made.authorities || !made.nodes.isEmpty {
            print("made development certificates in \(layout.certificates)")
        }
        if made.encryptionKey { print("made the encryption key \(layout.encryptionKey)") }
        if try AdministratorSecret.makeIfMissing(at: layout.administratorToken) {
            print("made the administrator's token \(layout.administratorToken)")
        }
        let cluster = LocalCluster(layout: layout)
        let started = try cluster.startMissing()
        let statuses = try await cluster.awaitReady(started, timeoutSeconds: timeout)
        print(ClusterTable.text(statuses))
    }
}
