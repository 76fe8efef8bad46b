import ArgumentParser
import Certificates
import Foundation

/// `zonekeeper certs renew`
struct CertsRenewCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "renew",
        abstract: "Issue every node's certificates again, for the same keys and names.",
        discussion: "Nodes read certificates when they start, so restart them one after another.")

    @OptionGroup var options: CertsOptions

    func run() async throws {
        let path = try options.folder().path
        let renewed = try CertificateFolder.load(path: path).renew(now: Date())
        for file in renewed { print("renewed \(file)") }
        print("restart the nodes, one after another, to use them")
    }
}
