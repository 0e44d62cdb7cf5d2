package ogenapi

import "net/http"

// DecodeJoinTokensCreate is what the generated handler does with a request
// before it calls the method.
func DecodeJoinTokensCreate(s *Server, r *http.Request) (*JoinTokensCreateInput, error) {
	in, _, done, err := s.decodeJoinTokensCreateRequest(r)
	if err != nil {
		return nil, err
	}
	return in, done()
}
