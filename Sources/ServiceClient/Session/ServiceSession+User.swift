import RecordModel
import Synchronization

extension ServiceSession {
    /// The user's record name in the container; asked for once.
    /// - Throws: as `send`; with `AUTHENTICATION_REQUIRED` where nobody is signed in.
    package func userRecordName() async throws -> String {
        if let name = state.withLock({ $0.isRefused ? nil : $0.user }) { return name }
        return try await askUserRecordName()
    }

    /// The user's record name, asked for now: whether the session still is one.
    /// - Throws: as `userRecordName`.
    package func askUserRecordName() async throws -> String {
        let name = try Self.name(in: await answer(to: caller(), isAnybodys: true))
        state.withLock { $0.user = name }
        return name
    }

    /// Who is asking; a user where there is one, else the server key's.
    private func caller() throws(ServiceClientError) -> ServiceRequest {
        var request = ServiceRequest(
            .post, databasePath + "/public/users/caller", body: Array("{}".utf8), isRepeatable: true)
        request.credentials = try hasUser ? userCredentials() : publicCredentials()
        return request
    }

    private static func name(in json: JSONValue) throws(ServiceClientError) -> String {
        guard let name = json["userRecordName"]?.string else {
            throw ServiceClientError("the answer has no userRecordName in it. Is this a Zonekeeper node?")
        }
        return name
    }

    /// Sends a request, once more where another program has renewed the session meanwhile, and keeps account of who is
    /// signed in.
    /// - Parameter isAnybodys: whether it may go out as another user than the one of before.
    func answer(
        to request: ServiceRequest, _ patience: Duration? = nil, isAnybodys: Bool = false
    ) async throws -> JSONValue {
        var request = request
        request.patienceSeconds = (patience ?? configuration.patience) / .seconds(1)
        if !isAnybodys, request.expectedUser == nil { request.expectedUser = state.withLock(\.user) }
        var response = try await send(request)
        if response.status == 421, request.userToken?.takeOver() == true { response = try await send(request) }
        guard response.isSuccess else {
            let failure = ServiceFailure(response)
            if request.userToken != nil, failure.isSignedOut { note(isRefused: true) }
            throw failure
        }
        if request.userToken != nil { note(isRefused: false) }
        do throws(JSONError) {
            return try response.parsed()
        } catch {
            throw ServiceFailure(ServiceResponse(status: response.status, headers: response.headers, body: []))
        }
    }

    private func send(_ request: ServiceRequest) async throws -> ServiceResponse {
        var request = request
        for _ in 0..<8 {
            do {
                try await settle(&request)
                return try await client.send(request)
            } catch is TokenTakenOver {
                continue
            }
        }
        throw ServiceClientError("the session's file is written again and again by another program", about: .session)
    }

    /// Makes sure that the token at hand is the same user's as ever: a file may hold another user's since somebody else
    /// signed in, and what was meant for one user must not go out as another's.
    /// - Throws: `AUTHENTICATION_REQUIRED` for a request that was begun for another user. Whoever listens hears of the new one
    ///   once; what is begun after that is the new user's.
    func settle(_ request: inout ServiceRequest) async throws {
        guard let source = token, source.isFile, let user = request.userToken else { return }
        _ = user.takeOver()
        let generation = user.snapshot.generation
        request.tokenGeneration = generation
        let (known, isKnown) = state.withLock { ($0.user, $0.generation == generation) }
        if isKnown {
            guard let expected = request.expectedUser, let known, known != expected else { return }
            throw ServiceFailure.userChanged
        }
        var question = try caller()
        question.tokenGeneration = generation
        let response = try await client.send(question)
        // A session that ended is told by the request itself.
        guard response.isSuccess, let json = try? response.parsed() else { return }
        let name = try Self.name(in: json)
        let isOther = state.withLock { state in
            defer { (state.user, state.generation) = (name, generation) }
            return state.user != nil && state.user != name
        }
        if isOther {
            AccountObservation.tell(.signedOut(self))
            AccountObservation.tell(.signedIn(self))
        }
        if let expected = request.expectedUser, expected != name { throw ServiceFailure.userChanged }
    }

    /// A node said whether it takes the token.
    func note(isRefused: Bool) {
        let isNew = state.withLock { state in
            defer { state.isRefused = isRefused }
            return state.isRefused != isRefused
        }
        if isNew { AccountObservation.tell(isRefused ? .signedOut(self) : .signedIn(self)) }
    }
}

extension ServiceFailure {
    /// What a request ends with that was meant for the user before.
    fileprivate static var userChanged: ServiceFailure {
        let json = JSONValue.members([
            "serverErrorCode": .string(ErrorCode.authenticationRequired.rawValue),
            "reason": .string("another user has signed in meanwhile: the session's file holds another user's session"),
        ])
        return ServiceFailure(ServiceResponse(status: 421, body: json.serialized()))
    }
}
