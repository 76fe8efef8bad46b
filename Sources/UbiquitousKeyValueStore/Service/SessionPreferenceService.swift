import RecordModel
package import ServiceClient

/// A session of the SDK's, as preferences need it.
package struct SessionPreferenceService: PreferenceService {
    private let session: ServiceSession
    package let name: String

    package init(_ session: ServiceSession) {
        self.session = session
        let configuration = session.configuration
        let credential =
            configuration.webAuthTokenFile.map { "file " + $0 } ?? "token " + (configuration.webAuthToken ?? "")
        name = configuration.urls.joined(separator: ",") + " " + credential
    }

    package func account() async throws(PreferenceServiceProblem) -> String {
        do { return try await session.userRecordName() } catch { throw PreferenceServiceProblem(error) }
    }

    package func changes(
        since token: String?, of account: String
    ) async throws(PreferenceServiceProblem) -> PreferencePage {
        let json: JSONValue
        do {
            json = try await session.keyValues("changes", PreferenceWire.changesRequest(since: token), of: account)
        } catch {
            throw PreferenceServiceProblem(error)
        }
        guard let page = PreferenceWire.page(json) else { throw .strange("changes") }
        return page
    }

    package func set(
        _ batch: PreferenceBatch, of account: String, device: String
    ) async throws(PreferenceServiceProblem) -> PreferenceUploadAnswer {
        do {
            let request = PreferenceWire.setRequest(batch, device: device)
            let json = try await session.keyValues("set", request, idempotencyKey: batch.id, of: account)
            guard let versions = PreferenceWire.versions(json, of: batch) else {
                throw PreferenceServiceProblem.strange("set")
            }
            return .applied(versions)
        } catch let failure as ServiceFailure where failure.retryAfterSeconds == nil && !failure.isSignedOut {
            if let answer = PreferenceWire.rejection(failure.json) { return answer }
            // Something before the server takes no request so large.
            if failure.status == 413 {
                return .refused(.other, key: nil, reason: "the request is too large: \(failure.description)")
            }
            let problem = PreferenceServiceProblem(failure)
            guard case .unavailable = problem, (400..<500).contains(failure.status) else { throw problem }
            throw [408, 425, 429].contains(failure.status) ? problem : .rejected(failure.description)
        } catch {
            throw PreferenceServiceProblem(error)
        }
    }

    package func watch(
        since token: String, of account: String, page: @Sendable (String, PreferencePage) async -> Bool
    ) async throws(PreferenceServiceProblem) {
        do {
            var position = token
            for try await event in session.watchKeyValues(syncToken: token, of: account) {
                switch event.name {
                case "changes":
                    guard let json = try? JSONParser.parse(Array(event.data.utf8)),
                        let found = PreferenceWire.page(json)
                    else { throw PreferenceServiceProblem.strange("watch") }
                    guard await page(position, found) else { return }
                    position = found.token
                case "expired": throw PreferenceServiceProblem.tokenExpired
                case "end":
                    let json = (try? JSONParser.parse(Array(event.data.utf8))) ?? .null
                    throw PreferenceServiceProblem(end: json)
                default: continue
                }
            }
        } catch {
            throw PreferenceServiceProblem(error)
        }
    }
}

extension PreferenceServiceProblem {
    init(_ error: any Error) {
        switch error {
        case let problem as PreferenceServiceProblem: self = problem
        case let failure as ServiceFailure:
            if failure.isSignedOut || failure.code == "AUTHENTICATION_FAILED" {
                self = .notSignedIn(failure.description)
            } else if PreferenceWire.isTokenExpired(failure.json) {
                self = .tokenExpired
            } else {
                self = .unavailable(
                    failure.description, retryAfterMilliseconds: failure.retryAfterSeconds.map(Self.milliseconds))
            }
        default: self = .unavailable("\(error)", retryAfterMilliseconds: nil)
        }
    }

    /// Why a node ended a stream.
    init(end json: JSONValue) {
        let reason = json["reason"]?.string ?? "the node ended the stream"
        if json["serverErrorCode"]?.string?.hasPrefix("AUTHENTICATION") == true {
            self = .notSignedIn(reason)
            return
        }
        self = .unavailable(reason, retryAfterMilliseconds: json.retryAfterSeconds.map(Self.milliseconds))
    }

    /// From none to a day, whatever the number is.
    private static func milliseconds(_ seconds: Double) -> Int64 {
        seconds.isNaN ? 0 : Int64(min(max(seconds, 0), 86_400) * 1000)
    }

    static func strange(_ action: String) -> PreferenceServiceProblem {
        .unavailable("the answer to '\(action)' is not one of a Zonekeeper node", retryAfterMilliseconds: 60_000)
    }
}
