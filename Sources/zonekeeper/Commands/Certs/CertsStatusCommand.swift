import ArgumentParser
import Certificates
import Foundation
import RecordModel
import ServiceClient

/// `zonekeeper certs status`
struct CertsStatusCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status", abstract: "List the certificates, whom they name and how long they last.")

    @OptionGroup var options: CertsOptions

    @Flag(help: "Print JSON.")
    var json = false

    func run() async throws {
        let now = Date()
        let list = try CertificateFolder.status(path: try options.folder().path)
        if json {
            let certificates = list.map { certificate in
                JSONValue.members([
                    "file": .string(certificate.file), "subject": .string(certificate.subject),
                    "issuer": .string(certificate.issuer), "names": .array(certificate.names.map { .string($0) }),
                    "notBefore": .string(Times.text(certificate.notBefore)),
                    "notAfter": .string(Times.text(certificate.notAfter)),
                    "daysLeft": .integer(Int64(certificate.daysLeft(at: now))),
                ])
            }
            return Console.print(JSONValue.members(["certificates": .array(certificates)]).serialized())
        }
        var table = Table("FILE", "VALID UNTIL", "LEFT", "NAMES")
        for certificate in list {
            let left = certificate.isExpired(at: now) ? "expired" : "\(certificate.daysLeft(at: now)) days"
            table.add([
                certificate.file, Times.text(certificate.notAfter), left,
                certificate.names.isEmpty ? certificate.subject : certificate.names.joined(separator: " "),
            ])
        }
        print(table.text)
    }
}
