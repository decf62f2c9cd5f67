package admin_test

import (
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/gin-gonic/gin"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit/admin"
)

// Operators who are signed in look at a user's budgets.
func ExampleRoutes() {
	gin.SetMode(gin.ReleaseMode)
	operatorsOnly := gin.BasicAuth(gin.Accounts{"dana": "secret"}) // or whatever signs your operators in
	operator := func(c *gin.Context) string { return c.GetString(gin.AuthUserKey) }

	limiter := ginlimit.NewMemoryLimiter()
	router := gin.New()
	admin.Routes(router.Group("/admin", operatorsOnly), limiter, admin.WithActor(operator))

	req := httptest.NewRequest(http.MethodGet, "/admin/usage?user=user_8421&tier=pro", nil)
	req.SetBasicAuth("dana", "secret")
	w := httptest.NewRecorder()
	router.ServeHTTP(w, req)
	var report struct {
		Budgets []struct {
			Window           string
			Limit, Remaining int
		}
	}
	if err := json.Unmarshal(w.Body.Bytes(), &report); err != nil {
		log.Fatal(err)
	}
	for _, b := range report.Budgets {
		fmt.Println(b.Remaining, "of", b.Limit, "left this", b.Window)
	}
	// Output:
	// 60 of 60 left this minute
	// 5000 of 5000 left this day
}
