import ArgumentParser
import Certificates
import Foundation

/// `zonekeeper certs renew`
struct CertsRenewCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "renew",
        abstract: "Issue every node's certificates again, for the same keys and names.",
        discussion:
            "Running nodes use renewed certificates for new connections within a second; nothing needs a restart.")

    @OptionGroup var options: CertsOptions

    func run() async throws {
        let path = try options.folder().path
        let renewed = try CertificateFolder.load(path: path).renew(now: Date())
        for file in renewed { print("renewed \(file)") }
        print("running nodes use them for new connections within a second")
    }
}
